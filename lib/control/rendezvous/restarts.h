// Decides whether a job restarts after a generation has ended, and keeps the history of its
// generations. Pure; not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

// A generation without known steps has made progress if it ran for this long.
inline constexpr std::chrono::seconds kProgressTime{60};
inline constexpr size_t kKeptGenerations = 100;  // in a history

class Restarts {
 public:
  enum class Next {
    kRestart,
    kFail,        // restarts are not allowed or are used up
    kNoProgress,  // the last restarts made no progress
  };

  explicit Restarts(RestartPolicy policy) : policy_(policy) {}
  // Continues the count of a host that was lost.
  Restarts(RestartPolicy policy, int used, std::vector<GenerationResult> history);

  // Records `end` and decides. A generation that was only resized always continues and is not
  // counted. Progress is a step beyond those of all earlier generations or, if no step is known,
  // kProgressTime.
  Next on_generation_end(GenerationResult end);
  // Whether one trainer more may be started again in its place; counts it.
  bool replace();
  // Records the last generation; nothing follows it.
  void record(GenerationResult end);

  const RestartPolicy& policy() const { return policy_; }
  int used() const { return used_; }                 // restarts after failures
  int counted() const { return used_ + replaced_; }  // with replacements
  int restarts_without_progress() const { return restarts_without_progress_; }
  // The newest kKeptGenerations, oldest first.
  const std::vector<GenerationResult>& history() const { return history_; }

 private:
  void count(const GenerationResult& end);
  bool progressed(const GenerationResult& end);

  RestartPolicy policy_;
  int used_ = 0;
  int replaced_ = 0;                   // trainers
  int restarts_without_progress_ = 0;  // restarts in a row without progress
  std::optional<int64_t> furthest_;    // step; nullopt: none is known
  std::vector<GenerationResult> history_;
};

// "generation 2 (3 nodes, 12 ranks): rank 3 ... exited with code 7 after 1.5 s; step 120", one line
// each, the newest 10.
std::string history_text(const std::vector<GenerationResult>& history);

}  // namespace fleet
