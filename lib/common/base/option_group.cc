#include "base/option_group.h"

#include <algorithm>
#include <iterator>

#include "base/terminal_width.h"

namespace fleet {

std::vector<std::string> Option::flags() const {
  std::vector<std::string> all;
  if (key_is_flag) all.push_back("--" + key);
  for (const std::string& alias : aliases) {
    const char* dashes = alias.starts_with('-') ? "" : alias.size() == 1 ? "-" : "--";
    all.push_back(dashes + alias);
  }
  return all;
}

std::string canonical_flag(std::string flag) {
  const size_t name = std::min(flag.find_first_not_of('-'), flag.size());
  std::replace(flag.begin() + static_cast<std::ptrdiff_t>(name), flag.end(), '-', '_');
  return flag;
}

OptionGroup& OptionGroup::include(OptionGroup other) {
  std::ranges::move(other.options_, std::back_inserter(options_));
  schema_.section("", other.schema_);
  return *this;
}

std::string option_help(const Option& option, const ConfigKey& key, size_t columns) {
  constexpr size_t kHelp = 26;  // where the texts begin
  std::string left = "  ";
  for (const std::string& alias : option.aliases) {
    if (alias.size() == 1) left += "-" + alias + ", ";
  }
  left += "--" + option.key;
  if (!option.is_flag()) {
    left += option.implied.empty() ? " " + option.value : "[=" + option.value + "]";
  }
  left.resize(std::max(left.size() + 1, kHelp), ' ');
  std::string initial = key.initial->text();
  if (initial.ends_with(".0")) initial.resize(initial.size() - 2);
  if (initial.starts_with('"')) initial = initial.substr(1, initial.size() - 2);
  const bool shown = !option.optional && !option.is_flag() && !initial.empty();
  return wrapped_text(left + key.help + (shown ? " (default " + initial + ")" : ""), kHelp,
                      columns) +
         "\n";
}

}  // namespace fleet
