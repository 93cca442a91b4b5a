#include "diagnosis/live_table.h"

#include <algorithm>
#include <vector>

#include "diagnosis/live_servers.h"

namespace fleet {
namespace {

constexpr int64_t kStepGap = 5'000'000'000, kUsageGap = 3'000'000'000;  // ns
// Tables of the other servers are left out of a report: it must fit a message.
constexpr int kServersWithTables = 256;

double ratio(int64_t part, int64_t whole) {
  return std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0);
}

void add_rates(const RankSteps& from, const RankSteps& to, wire::LiveRank* live) {
  live->set_step(to.step());
  if (to.has_loss()) live->set_loss(to.loss());
  const int64_t steps = to.steps() - from.steps(), time = to.step_ns() - from.step_ns();
  if (steps <= 0 || time <= 0) return;
  live->set_step_ms(1e-6 * static_cast<double>(time) / static_cast<double>(steps));
  if (to.samples() > 0) {  // a program may not report them
    live->set_samples_per_second(1e9 * static_cast<double>(to.samples() - from.samples()) /
                                 static_cast<double>(time));
  }
  live->set_input_share(ratio(to.input_ns() - from.input_ns(), time));
  if (to.has_exposed_ns()) {
    live->set_exposed_share(ratio(to.exposed_ns() - from.exposed_ns(), time));
  }
}

// All ranks report the same accuracy; only the first one knows that of an evaluation.
void add_accuracy(const RankSteps& rank, LiveReport* report) {
  if (!report->has_accuracy() && rank.has_accuracy()) report->set_accuracy(rank.accuracy());
  if (!report->has_evaluation_accuracy() && rank.has_evaluation_accuracy()) {
    report->set_evaluation_accuracy(rank.evaluation_accuracy());
  }
}

void add_usage(const RankUsage& from, const RankUsage& to, wire::LiveRank* live) {
  live->set_memory(to.memory());
  *live->mutable_gpus() = to.gpus();
  const int64_t time = to.at_ns() - from.at_ns();
  if (time <= 0) return;
  live->set_cpu(1e6 * static_cast<double>(std::max<int64_t>(0, to.cpu_ms() - from.cpu_ms())) /
                static_cast<double>(time));
  live->set_delayed(ratio(to.delayed_ns() - from.delayed_ns(), time));
}

// In ns a step: what the rank itself needs; 0: unknown. A device that hides its waiting measures
// how long its collectives take.
double own_time_of(const RankSteps& from, const RankSteps& to) {
  const int64_t steps = to.steps() - from.steps(), time = to.step_ns() - from.step_ns();
  const int64_t waited =
      to.has_exposed_ns() ? to.exposed_ns() - from.exposed_ns() : to.waited_ns() - from.waited_ns();
  if (steps <= 0 || time <= 0 || (waited <= 0 && !to.has_exposed_ns())) return 0;
  return static_cast<double>(std::max<int64_t>(time - waited, 0)) / static_cast<double>(steps);
}

}  // namespace

void TimeLeft::update(int64_t step, Time now) {
  if (!points_.empty() && step < points_.back().step) points_.clear();
  // A rank that does not finish steps must not look ever slower: only steps are points.
  if (!points_.empty() && step == points_.back().step) return;
  const size_t count = points_.size();
  if (count >= 2 && points_[count - 1].at - points_[count - 2].at < kSpacing) {
    points_.back() = {now, step};
  } else {
    points_.push_back({now, step});
  }
  if (points_.size() > kPoints) points_.pop_front();
}

std::optional<double> TimeLeft::seconds(int64_t target) const {
  if (target <= 0 || points_.size() < 2) return std::nullopt;
  const Point &first = points_.front(), &last = points_.back();
  const double passed = std::chrono::duration<double>(last.at - first.at).count();
  const auto left = static_cast<double>(std::max<int64_t>(target - last.step, 0));
  return left * passed / static_cast<double>(last.step - first.step);
}

void LiveTable::begin(Time now) {
  *this = {};
  began_ = now;
}

int64_t LiveTable::highest_step() const {
  int64_t step = 0;
  for (const auto& [key, rank] : ranks_) {
    if (rank.steps.any()) step = std::max(step, rank.steps.last().step());
  }
  return step;
}

void LiveTable::update(const StepReport& reports, Time now) {
  bool went_back = false;  // training continues from an earlier step
  for (const RankSteps& report : reports.ranks()) {
    ReportWindow<RankSteps>& window = ranks_[{false, report.rank()}].steps;
    went_back = went_back || (window.any() && report.step() < window.last().step());
    if (window.any() && report.steps() < window.last().steps()) window.restart();  // a new process
    const int64_t since =
        window.any() ? report.step_at_ns() - window.middle().step_at_ns() : int64_t{0};
    window.add(report, since, kStepGap);
    step_ = std::max(step_, report.step());
    target_ = std::max(target_, report.target());
  }
  if (went_back) step_ = highest_step();
  if (reports.ranks_size() > 0) time_left_.update(step_, now);
  for (const RankUsage& report : reports.usage()) {
    ReportWindow<RankUsage>& window = ranks_[{report.server(), report.rank()}].usage;
    const int64_t since = window.any() ? report.at_ns() - window.middle().at_ns() : int64_t{0};
    window.add(report, since, kUsageGap);
  }
  for (const wire::ServerReport& report : reports.servers()) {
    ReportWindow<wire::ServerReport>& window = ranks_[{true, report.rank()}].server;
    if (window.any() && report.pushes() < window.last().pushes()) window.restart();
    const int64_t since = window.any() ? report.at_ns() - window.middle().at_ns() : int64_t{0};
    window.add(report, since, kStepGap);
  }
}

wire::LiveRank LiveTable::live_rank(const Key& key, const Rank& rank) {
  wire::LiveRank live;
  live.set_server(key.first);
  live.set_rank(key.second);
  if (rank.usage.any()) {
    live.set_local_rank(rank.usage.last().local_rank());
    live.set_node_rank(rank.usage.last().node_rank());
    add_usage(rank.usage.first(), rank.usage.last(), &live);
  }
  if (rank.steps.any()) {
    live.set_local_rank(rank.steps.last().local_rank());
    live.set_node_rank(rank.steps.last().node_rank());
    add_rates(rank.steps.first(), rank.steps.last(), &live);
    if (rank.steps.last().has_servers()) {
      *live.mutable_servers() = live_server_use(rank.steps.first(), rank.steps.last());
    }
  }
  if (rank.server.any()) {
    live.set_node_rank(rank.server.last().node_rank());
    *live.mutable_serving() = live_server(rank.server.first(), rank.server.last());
    if (key.second >= kServersWithTables) live.mutable_serving()->clear_tables();
  }
  return live;
}

LiveReport LiveTable::report(Time now) const {
  LiveReport report;
  report.set_running_ms(
      std::chrono::duration_cast<std::chrono::milliseconds>(now - began_).count());
  for (const auto& [key, rank] : ranks_) {
    if (report.ranks_size() == kMaxRanks) break;
    *report.add_ranks() = live_rank(key, rank);
    const wire::LiveRank& added = report.ranks(report.ranks_size() - 1);
    if (!report.has_loss() && added.has_loss()) report.set_loss(added.loss());
    if (added.has_step()) report.set_step(step_);
    if (rank.steps.any()) add_accuracy(rank.steps.last(), &report);
  }
  report.set_left_out(static_cast<int>(ranks_.size()) - report.ranks_size());
  mark_slowest(&report);
  std::vector<UsePeriod> uses;
  for (const auto& [key, rank] : ranks_) {
    if (!rank.steps.any() || !rank.steps.last().has_servers()) continue;
    uses.push_back({&rank.steps.first().servers(), &rank.steps.last().servers()});
  }
  if (!uses.empty()) add_answer_times(uses, &report);
  if (target_ > 0) report.set_target(target_);
  if (const auto seconds = time_left_.seconds(target_)) report.set_seconds_left(*seconds);
  return report;
}

// The ranks of the report are the first of `ranks_`, in the same order.
void LiveTable::mark_slowest(LiveReport* report) const {
  wire::LiveRank* slowest = nullptr;
  double most = 0;
  int measured = 0;
  auto rank = ranks_.begin();
  for (wire::LiveRank& live : *report->mutable_ranks()) {
    const ReportWindow<RankSteps>& steps = (rank++)->second.steps;
    const double own = steps.any() ? own_time_of(steps.first(), steps.last()) : 0;
    if (own <= 0) continue;
    ++measured;
    if (own > most) slowest = &live, most = own;
  }
  if (measured > 1) slowest->set_slowest(true);
}

}  // namespace fleet
