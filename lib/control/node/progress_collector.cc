#include "node/progress_collector.h"

#include <string>
#include <utility>

#include "node/rank_steps.h"

namespace fleet {

void ProgressCollector::begin(const wire::SpawnRanks& spawn) {
  reports_.begin(spawn, StepReports::now());
  server_history_.begin(spawn.metrics_path(), spawn.logs().overwrite());
}

void ProgressCollector::read_reports(std::vector<GuardedRank>& ranks) {
  const StepReports::Moment now = StepReports::now();
  for (GuardedRank& rank : ranks) {
    if (!rank.log) continue;
    reports_.update(rank.command, rank.log->take_step_reports(), rank.ended, now);
  }
  reports_.flush(now);
}

StepReport ProgressCollector::take_changes(std::vector<GuardedRank>& ranks) {
  StepReport changes;
  for (GuardedRank& rank : ranks) {
    const int local_rank = rank.command.local_rank();
    if (const auto server = rank.progress ? rank.progress->read_server() : std::nullopt) {
      if (std::exchange(rank.sent_server_ns, server->at_ns) == server->at_ns) continue;
      server_history_.add(rank.command.rank(), *server, StepReports::now());
      *changes.add_servers() = server_report(local_rank, *server);
      continue;
    }
    bool reported = false;
    const auto seen = of(rank, &reported);
    if (!seen) continue;
    wire::RankSteps steps = rank_steps(local_rank, *seen, reported);
    if (const auto use = rank.progress ? rank.progress->read_use() : std::nullopt) {
      add_server_use(*use, &steps);
    }
    std::string bytes = steps.SerializeAsString();
    if (bytes == rank.sent_steps) continue;
    rank.sent_steps = std::move(bytes);
    *changes.add_ranks() = std::move(steps);
  }
  return changes;
}

std::optional<RankProgress> ProgressCollector::of(const GuardedRank& rank, bool* reported) const {
  auto counted = rank.progress ? rank.progress->read() : std::nullopt;
  if (reported) *reported = !counted;
  return counted ? counted : reports_.of(rank.command);
}

int64_t ProgressCollector::output_bytes(const GuardedRank& rank) const {
  return rank.log->bytes() + reports_.bytes(rank.command);
}

void ProgressCollector::on_rank_ended(const GuardedRank& rank, bool well) {
  reports_.on_rank_ended(rank.command, well, StepReports::now());
  if (rank.sent_server_ns > 0) {
    server_history_.on_server_ended(rank.command.rank(), StepReports::now());
  }
}

}  // namespace fleet
