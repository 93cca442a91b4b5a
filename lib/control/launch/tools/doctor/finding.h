// The result of a check.
#pragma once

#include <string>
#include <vector>

namespace fleet {

enum class Severity { kOk, kWarn, kFail };

struct Finding {
  std::string check;  // "reachability"
  Severity severity = Severity::kOk;
  std::string what;  // in one clause
  std::string next;  // advice; empty if none is needed
  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

inline Finding ok(std::string check, std::string what) {
  return {std::move(check), Severity::kOk, std::move(what), {}};
}
inline Finding warn(std::string check, std::string what, std::string next) {
  return {std::move(check), Severity::kWarn, std::move(what), std::move(next)};
}
inline Finding fail(std::string check, std::string what, std::string next) {
  return {std::move(check), Severity::kFail, std::move(what), std::move(next)};
}

}  // namespace fleet
