#include "node/step_reports.h"

#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/one_line.h"

namespace fleet {
namespace {

constexpr size_t kShownReport = 200;  // characters

}  // namespace

StepReports::Moment StepReports::now() { return {monotonic_ns(), unix_seconds()}; }

void StepReports::begin(const wire::SpawnRanks& spawn, Moment now) {
  ranks_.clear();
  by_rank_.clear();
  history_.begin(spawn.metrics_path(), spawn.world_size(), spawn.logs().overwrite(), now);
  for (const wire::RankCommand& rank : spawn.ranks()) {
    if (rank.steps_file().empty()) continue;
    ::unlink(rank.steps_file().c_str());
    ranks_.emplace(rank.local_rank(), Rank{StepFile(rank.steps_file()), {}});
  }
}

void StepReports::update(const wire::RankCommand& rank, const std::vector<StepText>& printed,
                         bool ended, Moment now) {
  const auto found = ranks_.find(rank.local_rank());
  if (found == ranks_.end() || (found->second.ended && ended)) return;
  Rank& of = found->second;
  of.ended = ended;  // false again: another process has taken its place
  for (const StepText& text : printed) add(rank, &of, text, "on standard output", now);
  const auto unix_ns = static_cast<int64_t>(now.unix * 1e9);
  for (const StepText& text : of.file.read(now.ns, unix_ns, ended)) {
    add(rank, &of, text, "in FLEET_STEPS_FILE", now);
  }
}

void StepReports::add(const wire::RankCommand& rank, Rank* of, const StepText& text,
                      const char* where, Moment now) {
  std::string why;
  const std::optional<ReportedStep> report = parse_reported_step(text.text, &why);
  if (!report) {
    if (!text.is_report || std::exchange(warned_, true)) return;
    spdlog::warn("rank {}: a report of a step {} is ignored, and any further wrong one: {}: {}",
                 rank.rank(), where, why, one_line(text.text, kShownReport));
    return;
  }
  of->steps.add(*report, text.at_ns);
  const RankProgress& progress = *of->steps.progress();
  by_rank_[rank.rank()] = progress;
  history_.add(rank.rank(), *report, progress, text.at_ns, now);
}

void StepReports::flush(Moment now) {
  history_.add_ranks(by_rank_, now);
  history_.flush();
}

void StepReports::on_rank_ended(const wire::RankCommand& rank, bool well, Moment now) {
  history_.on_rank_ended(rank.rank(), well, now);
  history_.flush();
}

std::optional<RankProgress> StepReports::of(const wire::RankCommand& rank) const {
  const auto found = ranks_.find(rank.local_rank());
  return found == ranks_.end() ? std::nullopt : found->second.steps.progress();
}

int64_t StepReports::bytes(const wire::RankCommand& rank) const {
  const auto found = ranks_.find(rank.local_rank());
  return found == ranks_.end() ? 0 : found->second.file.bytes();
}

}  // namespace fleet
