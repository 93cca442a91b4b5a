// Which meta-optimizers act where several are asked for that do not all go together: the rules of
// the strategy compiler of Paddle 2.0 to 2.6 (python/paddle/distributed/fleet/base/
// strategy_compiler.py), so that a strategy means here what it means there. tests/strategy/golden/
// has its outcomes, and what is known of releases before 2.6.
#pragma once

#include <string>
#include <vector>

namespace fleet {

struct ChainLink {
  std::string name;
  std::string paddle_class;        // orders them, as there
  std::vector<std::string> wraps;  // the names it may wrap
};

// Two links of which one may wrap the other are a chain; a chain to a link and one from it join to
// a longer one where the first link may also wrap the last. The longest wins, as far as Paddle
// finds it; where no two go together, the first by class. Returns the winner's names, the outermost
// first. No link may wrap itself, directly or through others.
std::vector<std::string> choose_chain(std::vector<ChainLink> links);

// The names among `winners` that `loser` does not go with: neither may wrap the other.
std::vector<std::string> conflicts(const ChainLink& loser, const std::vector<ChainLink>& winners);

}  // namespace fleet
