#include "node/hang_checks.h"

#include <sys/types.h>

#include <algorithm>

#include "node/process_tree.h"

namespace fleet {
namespace {

// Its share of the 5 s within which a hang is reported; the debuggers have 4 s.
constexpr std::chrono::milliseconds kLongestInterval{500}, kShortestInterval{20};

}  // namespace

void HangChecks::begin(std::chrono::milliseconds timeout, std::chrono::milliseconds usual) {
  timeout_ = timeout;
  interval_ = usual;
}

void HangChecks::watch(GuardedRank* rank) {
  if (timeout_.count() == 0 || !rank->command.expects_progress()) return;
  interval_ = std::clamp(timeout_ / 8, kShortestInterval, kLongestInterval);
  rank->hang_detector.emplace(timeout_, 2 * interval_);
}

std::vector<RankStall> HangChecks::check(std::vector<GuardedRank>& ranks,
                                         const ProgressCollector& progress, Time now) const {
  std::vector<GuardedRank*> watched;
  std::vector<pid_t> pids;
  for (GuardedRank& rank : ranks) {
    if (!rank.hang_detector || rank.ended) continue;
    watched.push_back(&rank);
    pids.push_back(rank.pid);
  }
  if (watched.empty()) return {};
  std::vector<RankStall> stalls;
  const std::vector<double> cpu = cpu_seconds(pids);
  for (size_t i = 0; i < watched.size(); ++i) {
    GuardedRank& rank = *watched[i];
    const auto seen = rank.progress->read();
    const RankActivity signs{progress.output_bytes(rank), cpu[i], seen ? seen->ticks : 0};
    const auto quiet = rank.hang_detector->update(signs, now);
    if (quiet.count() == 0) continue;
    RankStall& stall = stalls.emplace_back();
    stall.set_local_rank(rank.command.local_rank());
    stall.set_quiet_for_ms(quiet.count());
    if (seen && seen->ticks > 0) stall.set_step(seen->step);
  }
  return stalls;
}

}  // namespace fleet
