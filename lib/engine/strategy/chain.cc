#include <algorithm>

#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

using Chain = std::vector<size_t>;  // indices of links

bool may_wrap(const MetaOptimizerDef& outer, const MetaOptimizerDef& inner) {
  return std::count(outer.wraps.begin(), outer.wraps.end(), inner.name) > 0;
}

// For each pair, the longest chain from one to the other, in the manner of Floyd and Warshall. As
// in Paddle, whose results depend on it, the chain that grew last wins, even if a longer one was
// found before.
Chain longest(const MetaOptimizerDefs& links) {
  const size_t n = links.size();
  std::vector<std::vector<Chain>> between(n, std::vector<Chain>(n));  // empty: no chain
  Chain winner = {0};
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      if (!may_wrap(*links[from], *links[to])) continue;
      between[from][to] = {from, to};
      if (winner.size() == 1) winner = between[from][to];
    }
  }
  for (size_t through = 0; through < n; ++through) {
    for (size_t from = 0; from < n; ++from) {
      for (size_t to = 0; to < n; ++to) {
        Chain& chain = between[from][to];
        const Chain &first = between[from][through], &second = between[through][to];
        if (chain.empty() || first.empty() || second.empty()) continue;
        if (first.size() + second.size() - 1 <= chain.size()) continue;
        Chain joined = first;
        joined.insert(joined.end(), second.begin() + 1, second.end());
        chain = winner = std::move(joined);
      }
    }
  }
  return winner;
}

}  // namespace

std::vector<std::string> choose_chain(MetaOptimizerDefs links) {
  std::ranges::sort(links, {}, &MetaOptimizerDef::paddle_class);
  std::vector<std::string> names;
  if (links.empty()) return names;
  for (const size_t link : longest(links)) names.push_back(links[link]->name);
  return names;
}

std::vector<std::string> conflicts(const MetaOptimizerDef& loser,
                                   const MetaOptimizerDefs& winners) {
  std::vector<std::string> names;
  for (const MetaOptimizerDef* winner : winners) {
    if (!may_wrap(*winner, loser) && !may_wrap(loser, *winner)) names.push_back(winner->name);
  }
  return names;
}

}  // namespace fleet
