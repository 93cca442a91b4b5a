#include "node/live_reporter.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace fleet {
namespace {

constexpr std::chrono::seconds kProgressWriteInterval{5};

constexpr int kReportsPerSecond = 64;

std::vector<int> devices_on(const wire::Node& node) {
  std::set<int> all;
  for (int rank = 0; rank < node.local_world_size(); ++rank) {
    for (const int device : devices_of(node, rank)) all.insert(device);
  }
  return {all.begin(), all.end()};
}

}  // namespace

std::chrono::milliseconds usage_interval(int nnodes) {
  return std::chrono::seconds(std::max(1, (nnodes + kReportsPerSecond - 1) / kReportsPerSecond));
}

LiveReporter::LiveReporter(EventLoop& loop, std::function<void(StepReport)> send)
    : timer_(loop), send_(std::move(send)) {}

LiveReporter::~LiveReporter() = default;

void LiveReporter::begin(const Assignment& assignment) {
  end();
  assignment_ = assignment;
}

void LiveReporter::end() {
  timer_.cancel();
  targets_.clear();
  gpus_.reset();
  assignment_.reset();
}

void LiveReporter::on_rank_started(int local_rank, pid_t pid) {
  if (!assignment_) return;
  const wire::Node& node = assignment_->node();
  const auto all = static_cast<size_t>(node.local_world_size());
  if (targets_.size() == all) {  // another process in the place of one
    for (auto& target : targets_) {
      if (target.local_rank == local_rank) target.pid = pid;
    }
    return sampler_.watch(targets_);
  }
  targets_.push_back({local_rank, pid});
  if (targets_.size() < all) return;
  sampler_.watch(targets_);
  interval_ = usage_interval(assignment_->nnodes());
  wait();
}

void LiveReporter::wait() {
  timer_.after(interval_, [this] {
    report();
    if (assignment_) wait();  // the report may end the job, and with it the reports
  });
}

void LiveReporter::report() {
  const wire::Node& node = assignment_->node();
  // Not with the start of the ranks: loading the library takes a moment.
  const std::vector<int> devices = gpus_ ? std::vector<int>() : devices_on(node);
  if (!devices.empty()) gpus_ = std::make_unique<GpuMonitor>(devices, interval_);
  const std::map<int, wire::GpuUsage> gpus =
      gpus_ ? gpus_->latest() : std::map<int, wire::GpuUsage>();
  StepReport report;
  try {
    for (RankUsage& usage : sampler_.sample(std::chrono::steady_clock::now())) {
      usage.set_rank(rank_of(node, usage.local_rank()));
      usage.set_server(is_server(node, usage.local_rank()));
      for (const int device : devices_of(node, usage.local_rank())) {
        if (const auto found = gpus.find(device); found != gpus.end()) {
          *usage.add_gpus() = found->second;
        }
      }
      *report.add_usage() = std::move(usage);
    }
  } catch (const Error& error) {  // /proc cannot be read
    spdlog::debug("{}", error.what());
  }
  if (report.usage_size() > 0) send_(std::move(report));
}

void ProgressRecord::begin() { *this = {}; }

bool ProgressRecord::update(const StepReport& report, Time now, double unix_time) {
  if (report.ranks().empty()) return false;
  for (const RankSteps& rank : report.ranks()) {
    steps_[rank.local_rank()] = rank.step();
    progress_.set_target(std::max(progress_.target(), rank.target()));
    if (rank.has_loss()) progress_.set_loss(rank.loss());
  }
  int64_t highest = 0;  // lower than before if training has gone back
  for (const auto& [local_rank, step] : steps_) highest = std::max(highest, step);
  progress_.set_step(highest);
  time_left_.update(progress_.step(), now);
  progress_.clear_seconds_left();
  if (const auto left = time_left_.seconds(progress_.target())) progress_.set_seconds_left(*left);
  progress_.set_unix_time(unix_time);
  if (now < next_write_) return false;
  next_write_ = now + kProgressWriteInterval;
  return true;
}

}  // namespace fleet
