#include "node/guardian_trace.h"

#include <sys/wait.h>

#include <string>

#include "base/clock.h"

namespace fleet {

void GuardianTrace::begin_generation(int generation) {
  tracer_.begin_generation(generation, monotonic_ns());
}

void GuardianTrace::note(LauncherEvent::Kind kind, const GuardedRank* rank, int number,
                         int64_t at_ns) {
  tracer_.note(kind, rank ? rank->command.local_rank() : -1, rank ? rank->command.rank() : -1,
               number, at_ns);
}

void GuardianTrace::note_first_signs(std::vector<GuardedRank>& ranks,
                                     const ProgressCollector& progress) {
  for (GuardedRank& rank : ranks) {
    if (!rank.output_noted && rank.log && rank.log->first_output_ns() != 0) {
      rank.output_noted = true;
      note(LauncherEvent::FIRST_OUTPUT, &rank, 0, rank.log->first_output_ns());
    }
    if (rank.step_noted) continue;
    const auto seen = progress.of(rank);
    if (!seen || seen->first_step_at_ns == 0) continue;
    rank.step_noted = true;
    note(LauncherEvent::FIRST_STEP, &rank, 0, seen->first_step_at_ns);
  }
}

void GuardianTrace::on_rank_ended(const GuardedRank& rank, int status, int64_t at_ns) {
  if (WIFSIGNALED(status)) {
    note(LauncherEvent::KILLED, &rank, WTERMSIG(status), at_ns);
  } else {
    note(LauncherEvent::EXITED, &rank, WEXITSTATUS(status), at_ns);
  }
  tracer_.on_rank_ended(rank.pid);
}

TraceAnswer GuardianTrace::answer(const TraceRequest& request,
                                  const std::vector<GuardedRank>& ranks) {
  std::vector<RankTracer::Target> targets;
  for (const GuardedRank& rank : ranks) {
    if (rank.ended) continue;
    const std::string& program = rank.command.argv(0);
    const bool worker = program.substr(program.rfind('/') + 1) == "fleet-worker";
    targets.push_back({.local_rank = rank.command.local_rank(),
                       .rank = rank.command.rank(),
                       .pid = rank.pid,
                       .of_engine = worker || rank.progress->read().has_value(),
                       .progress = rank.progress.get()});
  }
  return tracer_.answer(request, targets);
}

}  // namespace fleet
