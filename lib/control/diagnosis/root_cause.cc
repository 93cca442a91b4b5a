#include "diagnosis/root_cause.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace fleet {
namespace {

int64_t ns(std::chrono::milliseconds time) { return std::chrono::nanoseconds(time).count(); }

// Kinds of exits, seen by themselves, the likeliest root cause first. The loss of another process
// never causes a SIGKILL and rarely a crash. Many programs exit or abort because of it, and ours
// report it with an exit code of their own.
enum class ExitKind { kKilled, kCrashed, kExited, kPeerLost };
ExitKind exit_kind(const RankExit& exit) {
  if (exit.signal() == 0)
    return exit.code() == kExitPeerLost ? ExitKind::kPeerLost : ExitKind::kExited;
  if (exit.signal() == SIGKILL) return ExitKind::kKilled;
  const bool often_follows =
      exit.signal() == SIGABRT || exit.signal() == SIGPIPE || exit.signal() == SIGTERM;
  return often_follows ? ExitKind::kExited : ExitKind::kCrashed;
}

}  // namespace

RootCauseTimes single_node_times(RootCauseTimes times) {
  times.window = std::min(times.window, std::chrono::milliseconds(20));
  return times;
}

void RootCauseAnalyzer::on_rank_failed(RankExit exit, Time now, Time steady) {
  const bool peer_lost = exit_kind(exit) == ExitKind::kPeerLost;
  due_ = std::min(due_, now + (peer_lost ? times_.peer_lost_window : times_.window));
  const bool timed = exit.has_at_error_ns();
  // Not later than its report. Without comparable clocks, assume some time within the window.
  const int64_t at =
      timed ? std::min(exit.at_ns(), steady_ns(steady)) : steady_ns(steady) - ns(times_.window) / 2;
  const int64_t error =
      (timed ? exit.at_error_ns() : ns(times_.window) / 2) + ns(times_.notice_delay);
  // Thousands may arrive within a moment, each with the tail of its log.
  const bool killed = exit_kind(exit) == ExitKind::kKilled;
  if (peer_lost ? ended_by_ != INT64_MAX : !killed && at - error > ended_by_) return;
  if (!peer_lost) ended_by_ = std::min(ended_by_, at + error);
  exits_.push_back({std::move(exit), at, error});
}

void RootCauseAnalyzer::on_node_lost(int node_rank, Time since) {
  if (!lost_) lost_ = {node_rank, steady_ns(since)};
  due_ = Time::min();
}

void RootCauseAnalyzer::on_stop(int64_t at_ns, int64_t error_ns) {
  std::erase_if(exits_,
                [&](const Failed& one) { return one.at_ns + one.error_ns >= at_ns - error_ns; });
  if (!any()) clear();
}

const RootCauseAnalyzer::Failed* RootCauseAnalyzer::first_exit() const {
  if (exits_.empty()) return nullptr;
  const auto is_peer_lost = [](const Failed& one) {
    return exit_kind(one.exit) == ExitKind::kPeerLost;
  };
  const bool only_peer_lost = std::all_of(exits_.begin(), exits_.end(), is_peer_lost);
  // The other ranks certainly ended after this moment, or may have ended before it.
  int64_t first_ended_by = INT64_MAX;
  for (const Failed& one : exits_) {
    if (only_peer_lost || !is_peer_lost(one)) {
      first_ended_by = std::min(first_ended_by, one.at_ns + one.error_ns);
    }
  }
  const Failed* first = nullptr;
  for (const Failed& one : exits_) {
    if (!only_peer_lost && is_peer_lost(one)) continue;
    // A guardian on a busy node may notice a kill later than others notice its consequences.
    const bool killed = exit_kind(one.exit) == ExitKind::kKilled;
    if (!killed && one.at_ns - one.error_ns > first_ended_by) continue;
    const auto key = [](const Failed& of) { return std::pair(exit_kind(of.exit), of.at_ns); };
    if (!first || key(one) < key(*first)) first = &one;
  }
  return first;
}

std::optional<RankExit> RootCauseAnalyzer::decide() {
  const Failed* first = first_exit();
  // A node's own reports precede its loss.
  const bool lost_first = lost_ && first && first->exit.node_rank() != lost_->node_rank &&
                          first->at_ns + first->error_ns >= lost_->since_ns - ns(times_.loss_delay);
  std::optional<RankExit> cause;
  if (first && !lost_first) cause = first->exit;
  clear();
  return cause;
}

void RootCauseAnalyzer::clear() {
  exits_.clear();
  lost_.reset();
  ended_by_ = INT64_MAX;
  due_ = Time::max();
}

}  // namespace fleet
