// The stages of a pipeline in messages about ranks.
#pragma once

#include <string>

namespace fleet {

// Puts the stage before each rank that the text names: "rank 3" is "stage 1 (rank 3)" of 2 stages.
// The text itself for a single stage.
std::string with_stages(const std::string& text, int stages);

}  // namespace fleet
