#include "optim/parameter_groups.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "base/text.h"

namespace fleet {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorCode::kUsage, "'" + text + "': " + why, "optimizer.groups",
              "write groups as \"layer1.*: rate=0.1 weight_decay=0\"");
}

double number_of(const std::string& text, const std::string& group) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(value >= 0 && value <= 1e6)) {
    refuse(group, "'" + text + "' is not a number from 0 to 1e6");
  }
  return value;
}

ParameterGroup parse(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) refuse(text, "missing ':' after the pattern");
  ParameterGroup group{.pattern = text.substr(0, colon), .rate = 1};
  if (group.pattern.empty()) refuse(text, "missing pattern");
  std::istringstream words(text.substr(colon + 1));
  for (std::string word; words >> word;) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals);
    const std::string value = equals < word.size() ? word.substr(equals + 1) : "";
    if (key == "rate") {
      group.rate = number_of(value, text);
      if (group.rate == 0) refuse(text, "a rate of 0 trains nothing; use optimizer.frozen");
    } else if (key == "weight_decay") {
      group.weight_decay = number_of(value, text);
    } else {
      refuse(text, "'" + key + "' is neither rate nor weight_decay");
    }
  }
  if (group.rate == 1 && !group.weight_decay) refuse(text, "it changes nothing");
  return group;
}

}  // namespace

std::string hint_for_pattern(const std::string& pattern, const std::vector<std::string>& names) {
  std::set<std::string> candidates(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name.starts_with(pattern + ".")) return "did you mean '" + pattern + ".*'?";
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      candidates.insert(name.substr(0, dot) + ".*");
      candidates.insert("*" + name.substr(dot));
    }
  }
  const std::string nearest =
      nearest_name(pattern, std::vector<std::string>(candidates.begin(), candidates.end()));
  if (!nearest.empty()) return "did you mean '" + nearest + "'?";
  constexpr size_t kShown = 4;
  return "known: " + join_first(names, kShown);
}

bool matches_pattern(const std::string& pattern, const std::string& parameter) {
  return ::fnmatch(pattern.c_str(), parameter.c_str(), 0) == 0;
}

bool matches_any(const std::vector<std::string>& patterns, const std::string& parameter) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return matches_pattern(pattern, parameter); });
}

std::vector<ParameterGroup> parameter_groups(const Settings& optimizer) {
  std::vector<ParameterGroup> groups;
  for (const std::string& text : optimizer.texts("groups")) groups.push_back(parse(text));
  return groups;
}

const ParameterGroup* group_of(const std::vector<ParameterGroup>& groups,
                               const std::string& parameter) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& group) {
    return matches_pattern(group.pattern, parameter);
  });
  return found == groups.end() ? nullptr : &*found;
}

void check_parameter_patterns(const Program& program, const Settings& optimizer) {
  std::vector<std::string> names;
  for (const VarId id : program.parameters()) names.push_back(program.var(id).name);
  const auto check = [&](const std::string& pattern, const std::string& key) {
    const bool found = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return matches_pattern(pattern, name);
    });
    if (found) return;
    throw Error(ErrorCode::kUsage, "no parameter matches '" + pattern + "'", key,
                hint_for_pattern(pattern, names));
  };
  for (const std::string key : {"frozen", "clip_exclude", "adamw_parameters"}) {
    if (!optimizer.has(key)) continue;
    for (const std::string& pattern : optimizer.texts(key)) check(pattern, "optimizer." + key);
  }
  for (const ParameterGroup& group : parameter_groups(optimizer)) {
    check(group.pattern, "optimizer.groups");
  }
}

int freeze_parameters(Program& program, const Settings& optimizer) {
  const std::vector<std::string> patterns = optimizer.texts("frozen");
  if (patterns.empty()) return 0;
  int frozen = 0;
  const std::vector<VarId> parameters = program.parameters();
  for (const VarId id : parameters) {
    Var& var = program.var(id);
    if (!matches_any(patterns, var.name)) continue;
    var.trainable = false;
    ++frozen;
  }
  if (frozen == static_cast<int>(parameters.size())) {
    throw Error(ErrorCode::kUsage, "every parameter is frozen", "optimizer.frozen",
                "remove a pattern: there is nothing to train");
  }
  return frozen;
}

}  // namespace fleet
