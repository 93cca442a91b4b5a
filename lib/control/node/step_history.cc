#include "node/step_history.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "node/history_file.h"

namespace fleet {
namespace {

constexpr size_t kMostPending = 4 << 20;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// As in fleet-worker: lines of large jobs are long.
int64_t ns_between_lines(size_t ranks) {
  return static_cast<int64_t>(1e9 * std::max(2.0, static_cast<double>(ranks) / 20));
}

// In seconds a step; NaN: unknown.
double a_step(int64_t from, int64_t to, int64_t steps) {
  return steps > 0 ? 1e-9 * static_cast<double>(to - from) / static_cast<double>(steps) : kNoNumber;
}

}  // namespace

void StepHistory::begin(const std::string& path, int world_size, bool overwrite, Moment now) {
  path_ = path;
  world_size_ = world_size;
  overwrite_ = overwrite;
  began_ = now;
  rank_.reset();
  last_ = {};
  ranks_.clear();
  ranks_at_ns_ = now.ns;
}

void StepHistory::add(int rank, const ReportedStep& report, const RankProgress& after,
                      int64_t at_ns, Moment now) {
  if (path_.empty() || rank != rank_.value_or(rank)) return;
  const double time = now.at(at_ns);
  if (!rank_ || report.step < last_.step) add_start(report, time);
  EventLine line("train");
  line.add("step", report.step);
  if (report.epoch) line.add("epoch", *report.epoch);
  if (report.loss) line.add("loss", *report.loss);
  if (report.samples) line.add("samples", *report.samples);
  const int64_t steps = after.steps - last_.steps;
  const double batch = a_step(last_.totals.time, after.totals.time, steps);
  if (rank_ && batch > 0) {
    line.add("batch_time", batch);
    if (report.data_time) line.add("data_time", *report.data_time);
    const auto samples = static_cast<double>(after.totals.samples - last_.totals.samples);
    if (samples > 0) line.add("speed", samples / (batch * static_cast<double>(steps)));
  }
  for (const auto& [name, value] : report.others) line.add(name, value);
  rank_ = rank;
  last_ = after;
  write(line, time);
}

// Training begins, or goes back to an earlier step.
void StepHistory::add_start(const ReportedStep& report, double time) {
  EventLine start("start");
  start.add("ranks", world_size_).add("step", report.step).add("reported", true);
  start.add("log_dir", std::filesystem::path(path_).parent_path().string());
  write(start, time);
}

void StepHistory::add_ranks(const std::map<int, RankProgress>& ranks, Moment now) {
  if (!rank_ || ranks.empty()) return;
  const auto size = static_cast<size_t>(ranks.rbegin()->first) + 1;
  if (now.ns - ranks_at_ns_ < ns_between_lines(size)) return;
  std::vector<double> batch(size, kNoNumber), data = batch, waited = batch;
  bool any = false;
  for (const auto& [rank, progress] : ranks) {
    const auto at = static_cast<size_t>(rank);
    const StepTotals &from = ranks_[rank].totals, &to = progress.totals;
    const int64_t steps = progress.steps - ranks_[rank].steps;
    batch[at] = a_step(from.time, to.time, steps);
    data[at] = a_step(from.input, to.input, steps);
    if (to.exposed >= 0) waited[at] = a_step(from.waited, to.waited, steps);
    any = any || batch[at] > 0;
  }
  if (!any) return;
  ranks_ = ranks;
  ranks_at_ns_ = now.ns;
  write(EventLine("ranks")
            .add("step", last_.step)
            .add("batch_time", std::move(batch))
            .add("data_time", std::move(data))
            .add("wait_time", std::move(waited)),
        now.unix);
}

void StepHistory::on_rank_ended(int rank, bool well, Moment now) {
  if (rank != rank_ || !well) return;
  const auto seconds = [](int64_t from, int64_t to) {
    return 1e-9 * static_cast<double>(to - from);
  };
  EventLine summary("summary");
  summary.add("steps", last_.step)
      .add("seconds", seconds(began_.ns, now.ns))
      .add("start_seconds", seconds(began_.ns, last_.first_step_at_ns))
      .add("training_seconds", seconds(last_.first_step_at_ns, last_.step_at_ns))
      .add("stopped", false);
  if (last_.totals.samples > 0 && last_.totals.time > 0) {
    summary.add("speed", 1e9 * static_cast<double>(last_.totals.samples) /
                             static_cast<double>(last_.totals.time));
  }
  write(summary, now.unix);
}

void StepHistory::write(const EventLine& line, double time) {
  // A disk that fails for long does not fill the memory.
  if (lines_.size() < kMostPending) lines_ += line.json(time) + "\n";
}

void StepHistory::flush() {
  if (lines_.empty()) return;
  try {
    if (!opened_ && overwrite_) {
      ::unlink(path_.c_str());
    } else if (!opened_) {
      set_history_aside(path_);
    }
    opened_ = true;
    append_history(path_, lines_);
    lines_.clear();
    failed_ = false;
  } catch (const Error& error) {
    if (!std::exchange(failed_, true)) spdlog::warn("{}; steps are not kept there", error.what());
  }
}

}  // namespace fleet
