#include "train/name_prefix.h"

namespace fleet {

NamePrefix likely_prefix(const std::vector<std::string>& names,
                         const std::set<std::string>& known) {
  std::map<std::string, size_t> fits = {{"", 0}};
  for (const std::string& name : names) {
    for (size_t at = 0; at != std::string::npos;) {
      if (known.contains(name.substr(at))) ++fits[name.substr(0, at)];
      const size_t dot = name.find('.', at);
      at = dot == std::string::npos ? dot : dot + 1;
    }
  }
  NamePrefix best;
  for (const auto& [text, count] : fits) {
    if (count > best.fits) best = {text, count};
  }
  return best;
}

}  // namespace fleet
