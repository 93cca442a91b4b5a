#include "strategy/chain.h"

#include <algorithm>

namespace fleet {

std::vector<std::string> choose_chain(std::vector<ChainLink> links) {
  std::sort(links.begin(), links.end(),
            [](const ChainLink& a, const ChainLink& b) { return a.paddle_class < b.paddle_class; });
  std::vector<std::string> longest;
  for (const ChainLink& outer : links) {
    std::vector<std::string> chain = {outer.name};
    for (const ChainLink& inner : links) {
      const auto wrapped = std::find(outer.wraps.begin(), outer.wraps.end(), inner.name);
      if (wrapped != outer.wraps.end()) chain.push_back(inner.name);
    }
    if (chain.size() > longest.size()) longest = std::move(chain);
  }
  return longest;
}

}  // namespace fleet
