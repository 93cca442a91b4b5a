// Gradients of rows of tables in a rank's part of a checkpoint: those of an update that the
// checkpoint is within (gradient_merge).
#pragma once

#include <vector>

#include "exec/parameter_exchange.h"
#include "train/safetensors.h"

namespace fleet {

// Adds tensors NAME.merged_ids, .merged_shows, .merged_clicks and .merged_gradients for each table
// that has some.
void add_merged_rows(const std::vector<MergedRows>& rows, TensorFile* part);
// Takes them out of the part again. path: for messages. DamagedFile if they do not fit together.
std::vector<MergedRows> take_merged_rows(TensorFile* part, const std::string& path);

}  // namespace fleet
