// Sums of gradients over several steps: states "<parameter>.merged_gradient", 0 after each update.
#pragma once

namespace fleet {

inline constexpr char kMergedGradient[] = ".merged_gradient";  // the end of their names

}  // namespace fleet
