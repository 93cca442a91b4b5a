// Which meta-optimizers act where several are asked for that do not all go together: the rules of
// Paddle's strategy compiler (python/paddle/distributed/fleet/base/strategy_compiler.py,
// maximum_path_len_algo), so that a strategy means here what it means there.
#pragma once

#include <string>
#include <vector>

namespace fleet {

struct ChainLink {
  std::string name;
  std::string paddle_class;        // orders them, as there
  std::vector<std::string> wraps;  // the names it may wrap
};

// Each link with all those it may wrap is a candidate; the longest wins, of equally long ones the
// first by class. Returns the winner's names, the wrapping one first.
std::vector<std::string> choose_chain(std::vector<ChainLink> links);

}  // namespace fleet
