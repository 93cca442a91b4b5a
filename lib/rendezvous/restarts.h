// Whether a job whose epoch has ended starts again, and what its epochs were. Pure; not
// thread-safe.
#pragma once

#include <vector>

#include "rendezvous/types.h"

namespace fleet {

// An epoch of which no step is known has made progress when it ran for so long.
inline constexpr std::chrono::seconds kProgressTime{60};

class Restarts {
 public:
  enum class Next {
    kRestart,
    kFail,        // restarts are not allowed, or all have been used
    kNoProgress,  // those before did not help
  };

  explicit Restarts(RestartPolicy policy) : policy_(policy) {}
  // Goes on counting where a host that was lost has stopped.
  Restarts(RestartPolicy policy, int used, std::vector<EpochEnd> history);

  // Keeps `end`, and decides. An epoch that was only resized always goes on, and is not counted.
  // Progress is a step that no epoch before has reached; where no step is known, kProgressTime.
  Next ended(EpochEnd end);
  // The last epoch, of which nothing follows.
  void keep(EpochEnd end);

  const RestartPolicy& policy() const { return policy_; }
  int used() const { return used_; }  // restarts after failures
  int in_vain() const { return in_vain_; }
  const std::vector<EpochEnd>& history() const { return history_; }  // the newest 100, oldest first

 private:
  void count(const EpochEnd& end);
  bool progressed(const EpochEnd& end);

  RestartPolicy policy_;
  int used_ = 0;
  int in_vain_ = 0;  // restarts in a row whose epochs made no progress
  int64_t furthest_ = -1;
  std::vector<EpochEnd> history_;
};

// "epoch 2 (3 nodes, 12 ranks): rank 3 ... exited with code 7 after 1.5 s; step 120", a line each,
// the newest 10.
std::string history_text(const std::vector<EpochEnd>& history);

}  // namespace fleet
