// Trainers that were started again in their places, for the verdict. Pure: the time is an argument.
// Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>

#include "rendezvous/types.h"

namespace fleet {

inline constexpr size_t kKeptReplacements = 100;

class Replacements {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void add(const wire::ReplaceCommand& command, Time now);
  // Takes over what the new processes report about those that they replace.
  void update(const StepReport& report, int generation);
  // The newest kKeptReplacements, oldest first.
  void add_to(Verdict* verdict, Time now) const;

 private:
  struct Entry {
    Time at;
    wire::Replacement what;
  };
  std::deque<Entry> entries_;
};

}  // namespace fleet
