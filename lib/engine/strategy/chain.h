// Chooses the meta-optimizers that act if several are requested that cannot all be combined: the
// rules of the strategy compiler of Paddle 2.0 to 2.6
// (python/paddle/distributed/fleet/base/strategy_compiler.py), so that a strategy means the same
// here. tests/engine/strategy/golden/ has its results, and the known differences of releases
// before 2.6.
#pragma once

#include <string>
#include <vector>

namespace fleet {

struct ChainLink {
  std::string name;
  std::string paddle_class;        // orders the links, as in Paddle
  std::vector<std::string> wraps;  // names that it may wrap
};

// Two links form a chain if one may wrap the other; a chain to a link and one from it join to
// a longer one if the first link may also wrap the last. The longest chain that Paddle's algorithm
// finds wins; if no two can be combined, the first by class. Returns the winner's names, outermost
// first. No link may wrap itself, directly or through others.
std::vector<std::string> choose_chain(std::vector<ChainLink> links);

// The names among `winners` that cannot be combined with `loser`: neither may wrap the other.
std::vector<std::string> conflicts(const ChainLink& loser, const std::vector<ChainLink>& winners);

}  // namespace fleet
