// When a section of a Program runs.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace fleet {

using FlagId = int;
inline constexpr FlagId kNoFlag = -1;
inline constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

// What the host knows of a step before it runs.
struct StepInfo {
  int64_t step = 0;  // training steps from 0
  bool evaluate = false;
  bool fetch = false;
  // A run of its own, before the first and whenever the host wrote parameters: what is derived from
  // them is made anew. The Executor asks for it.
  bool refresh = false;
  // A run of its own, before evaluation and saving: ranks that have drifted apart meet.
  bool sync = false;
  uint64_t flags = 0;  // bit f: what the host decided for flag f of the Program
};

// When a section runs. Fields of training steps say nothing of the other runs.
struct Predicate {
  bool training = true;
  bool evaluation = false;
  bool fetch_only = false;
  bool refresh = false;           // in a refresh, and never else
  bool sync = false;              // in a sync too
  int64_t every = 1;              // training: steps where (step + 1) mod every == 0
  bool between = false;           // training: the steps that `every` leaves out instead
  int64_t from_step = 0;          // training: steps from this one on
  int64_t until_step = kForever;  // training: steps before this one
  FlagId flag = kNoFlag;          // training: steps where the host set this flag,
  bool flag_value = true;         // or cleared it
  bool holds(const StepInfo& info) const;
  // Whether it holds whenever the other does.
  bool covers(const Predicate& other) const;
  std::string text() const;
};

// Whether one of `any` holds whenever `other` does.
bool cover(std::span<const Predicate> any, const Predicate& other);
// Whether they never hold in the same run: both may then write one variable.
bool exclude(const Predicate& a, const Predicate& b);

}  // namespace fleet
