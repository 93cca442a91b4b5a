// Prefixes of a model's names in a file of weights ("module.", "net.").
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace fleet {

// A start of names, and how many of the model's names follow it.
struct NamePrefix {
  std::string text;
  size_t fits = 0;
};

// The prefix, up to a dot or empty, behind which most of the names are the model's; the shortest
// of equal ones.
NamePrefix likely_prefix(const std::vector<std::string>& names, const std::set<std::string>& known);

// Removes the prefix from the names that have it.
template <typename Value>
void remove_prefix(const std::string& prefix, std::map<std::string, Value>* named) {
  std::map<std::string, Value> renamed;
  for (auto& [name, value] : *named) {
    const size_t begin = name.starts_with(prefix) ? prefix.size() : 0;
    renamed.emplace(name.substr(begin), std::move(value));
  }
  *named = std::move(renamed);
}

}  // namespace fleet
