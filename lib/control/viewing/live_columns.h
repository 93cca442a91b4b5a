// The columns of fleetrun top, and the rows that they show. For live_view.cc and live_frame.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

constexpr int kLiveLossDigits = 4;

// A rank, or the sums over those of a node or of the job.
struct LiveRow {
  enum class Kind { kRank, kNode, kAll };
  Kind kind;
  const wire::LiveRank* values;
};

struct LiveColumn {
  static constexpr int kAlways = 100;

  const char* title;
  const char* key;  // of --sort
  char letter;      // of the keyboard, for the same
  int importance;   // in a narrow frame, those with the lowest are left out first
  std::optional<double> (*value)(const wire::LiveRank&);
  std::string (*text)(double value);
  std::string (*label)(const LiveRow&) = nullptr;  // shown instead of the value
};

std::span<const LiveColumn> live_columns();

// By rank and by node in ascending order; by another column, the largest value first, and unknown
// ones last.
std::vector<const wire::LiveRank*> sorted_ranks(const LiveReport& report, const std::string& key);

// Sums of speed, CPU time, memory and GPUs; means of shares and of the loss; the last step that all
// have finished, and the longest time of a step. A GPU that several ranks use counts once.
wire::LiveRank sum_of(std::span<const wire::LiveRank* const> ranks);
// The same report with one element for each node in place of its ranks.
LiveReport node_sums(const LiveReport& report);

}  // namespace fleet
