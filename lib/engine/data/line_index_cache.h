// Indexes of lines that one process of a machine makes and the others, and later runs, load.
// Internal to data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/line_index.h"

namespace fleet::data {

struct LineIndexCache {
  std::string folder;    // "": ~/.cache/fleetrun
  std::string identity;  // what the check of the lines depends on
  std::string name;      // in messages: "data.train"
  bool verbose = true;
  uint64_t least_bytes = uint64_t{64} << 20;  // the index of smaller data is always made
};

// The index of these files, whose content must not have changed (size, time and some pieces count).
// Without a folder that can be written, each process makes its own. Errors of LineIndex.
std::shared_ptr<const LineIndex> cached_line_index(std::vector<LineFile> files,
                                                   const LineIndexOptions& options,
                                                   const LineIndexCache& cache);

}  // namespace fleet::data
