#include "daemon/flags.h"

#include "base/error.h"
#include "base/text.h"

namespace fleet {

CommandLine::CommandLine(const std::string& program, const std::vector<std::string>& arguments,
                         const std::vector<Flag>& flags, size_t most) {
  std::vector<std::string> names;
  for (const Flag& flag : flags) names.push_back(flag.name);
  const auto refuse = [&](const std::string& what, std::string next) {
    if (next.empty()) next = "see " + program + " --help";
    throw Error(ErrorCode::kUsage, what, program, next);
  };
  for (size_t at = 0; at < arguments.size(); ++at) {
    const std::string& word = arguments[at];
    if (word.size() < 2 || word[0] != '-') {
      words_.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Flag* found = nullptr;
    for (const Flag& flag : flags) {
      if (name == flag.name || name == flag.short_name) found = &flag;
    }
    if (!found) {
      const std::string near = nearest_name(name, names);
      refuse("unknown option '" + name + "'", near.empty() ? "" : "did you mean '" + near + "'?");
    }
    const bool inline_value = equals != std::string::npos;
    if (!found->has_value && inline_value) refuse(name + " takes no value", "");
    if (found->has_value && !inline_value && at + 1 == arguments.size()) {
      refuse(name + " needs a value", "");
    }
    values_[found->name] = !found->has_value ? ""
                           : inline_value    ? word.substr(equals + 1)
                                             : arguments[++at];
  }
  if (words_.size() > most) refuse("'" + words_[most] + "' is one word too many", "");
}

std::string CommandLine::value(const std::string& flag, const std::string& otherwise) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? otherwise : found->second;
}

}  // namespace fleet
