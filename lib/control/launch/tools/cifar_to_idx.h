// Writes the binary version of CIFAR-10 and CIFAR-100 as IDX files.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// Each record of `parts` has `labels` bytes of labels, of which the last is kept, then 3 planes of
// 32x32 pixels. Writes images (count x 32 x 32 x 3) and labels. kIo if a part is damaged.
void cifar_to_idx(const std::vector<std::string>& parts, int labels, const std::string& images,
                  const std::string& label_file);

}  // namespace fleet
