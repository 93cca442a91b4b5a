#include "node/rank_stacks.h"

#include <chrono>

#include "base/clock.h"
#include "base/terminal_text.h"
#include "diagnosis/cause/failure_cause.h"
#include "node/process_tree.h"

namespace fleet {
namespace {

// Also of ranks that have ended.
void add_collectives(const std::vector<GuardedRank>& ranks, Stacks* stacks) {
  for (const GuardedRank& rank : ranks) {
    if (!rank.collectives) continue;
    const CollectiveSnapshot snapshot = rank.collectives->read();
    if (snapshot.pid == 0) continue;
    const char state = rank.ended ? 'X' : process_state(rank.pid);
    RankCollectives& calls = *stacks->add_collectives();
    calls = calls_of(snapshot, rank.command.rank(), monotonic_ns());
    calls.set_local_rank(rank.command.local_rank());
    calls.set_state(rank.ended ? state : writer_state(snapshot, state));
  }
}

// Exceptions that ranks have printed and that did not end them: another thread, or an exit hook
// that waits, keeps the process alive.
void add_errors(const std::vector<GuardedRank>& ranks, Stacks* stacks) {
  for (const GuardedRank& rank : ranks) {
    if (rank.ended || !rank.log) continue;
    std::string error = last_error(resolve_output(rank.log->shown()), true);
    if (error.empty()) continue;
    RankEnding& ending = *stacks->add_endings();
    ending.set_local_rank(rank.command.local_rank());
    ending.set_error(std::move(error));
  }
}

}  // namespace

void RankStacks::collect(const wire::CollectStacks& request,
                         const std::vector<GuardedRank>& ranks) {
  if (collected_) return;
  std::vector<StackCollector::Target> targets;
  std::vector<FlightCollector::Target> others;  // without a log of our engine
  for (const GuardedRank& rank : ranks) {
    if (rank.ended) continue;
    const wire::RankCommand& command = rank.command;
    const std::string& beside =
        command.log_path().empty() ? command.error_file() : command.log_path();
    targets.push_back({command.local_rank(), rank.pid, beside + ".stack"});
    if (rank.collectives && rank.collectives->read().pid != 0) continue;
    others.push_back({command.local_rank(), command.rank(), rank.pid});
  }
  collected_.emplace();
  collecting_ = 2;
  // Before the debuggers: they stop the ranks for a moment.
  add_collectives(ranks, &*collected_);
  add_errors(ranks, &*collected_);
  const std::chrono::milliseconds limit(request.limit_ms());
  const std::chrono::milliseconds dump_limit(request.dump_limit_ms());
  flight_collector_.collect(others, request.folder(), dump_limit,
                            [this](std::vector<RankCollectives> calls) {
                              for (RankCollectives& one : calls) {
                                *collected_->add_collectives() = std::move(one);
                              }
                              send_collected();
                            });
  collector_.collect(targets, limit, [this](const Stacks& stacks) {
    *collected_->mutable_clusters() = cluster_stacks(stacks).clusters();
    send_collected();
  });
}

void RankStacks::send_collected() {
  if (--collecting_ > 0) return;
  send_(*std::exchange(collected_, std::nullopt));
}

}  // namespace fleet
