// The columns of fleetrun top, and the rows that they show. For live_view.cc and live_frame.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
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
  char letter;      // the key that sorts by it
  int importance;   // in a narrow frame, those with the lowest are left out first
  std::optional<double> (*value)(const wire::LiveRank&);
  std::string (*text)(double value);
  std::string (*label)(const LiveRow&) = nullptr;  // shown instead of the value
};

std::span<const LiveColumn> live_columns();  // the table with the trainers
// The table with the servers. The keyboard has no letters for it.
std::span<const LiveColumn> server_columns();
std::string live_rank_label(const LiveRow& row);

// By rank and by node in ascending order; by another column, the largest value first, and unknown
// ones last. A key without a column: no change.
void sort_ranks(std::span<const LiveColumn> columns, const std::string& key,
                std::vector<const wire::LiveRank*>* ranks);
std::vector<const wire::LiveRank*> sorted_ranks(const LiveReport& report, const std::string& key);
std::vector<const wire::LiveRank*> sorted_servers(const LiveReport& report, const std::string& key);

// "serves"
const char* server_state_name(wire::ServerReport::State state);
Json server_json(const wire::LiveServer& server);
Json server_use_json(const wire::LiveServerUse& use);

// Sums of speed, CPU time, memory and GPUs; means of shares and of the loss; the last step that all
// have finished, and the longest time of a step. A GPU that several ranks use counts once.
wire::LiveRank sum_of(std::span<const wire::LiveRank* const> ranks);
// The same report with one element for each node in place of its ranks.
LiveReport node_sums(const LiveReport& report);

}  // namespace fleet
