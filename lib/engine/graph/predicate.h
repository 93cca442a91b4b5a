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

// Facts that the host knows about a step before it runs.
struct StepInfo {
  int64_t step = 0;  // training step, from 0
  bool evaluate = false;
  bool fetch = false;
  // A separate run, before the first one and whenever the host wrote parameters: recomputes values
  // derived from them. The Executor requests it.
  bool refresh = false;
  // A separate run, before evaluation and saving: synchronizes ranks that have diverged.
  bool sync = false;
  uint64_t flags = 0;  // bit f: the host's decision for flag f of the Program
};

// When a section runs. Fields of training steps do not affect other runs.
struct Predicate {
  bool training = true;
  bool evaluation = false;
  bool fetch_only = false;
  bool refresh = false;           // in a refresh, and only there
  bool sync = false;              // also in a sync
  int64_t every = 1;              // training: steps where (step + 1) mod every == 0
  bool between = false;           // training: exactly the steps that `every` leaves out
  int64_t from_step = 0;          // training: from this step on
  int64_t until_step = kForever;  // training: before this step
  FlagId flag = kNoFlag;          // training: steps where the host set this flag,
  bool flag_value = true;         // or cleared it
  bool holds(const StepInfo& info) const;
  // Whether this holds whenever `other` does.
  bool covers(const Predicate& other) const;
  std::string text() const;
};

// Whether at least one of `any` holds whenever `other` does.
bool cover(std::span<const Predicate> any, const Predicate& other);
// Whether they never hold in the same run: both may then write one variable.
bool exclude(const Predicate& a, const Predicate& b);

}  // namespace fleet
