#include "diagnosis/rank_times.h"

#include <algorithm>
#include <chrono>

#include "diagnosis/gpu_throttling.h"

namespace fleet {
namespace {

constexpr double kMinSteps = 5;              // measured over at least this many steps
constexpr std::chrono::seconds kMinTime{5};  // and this long
constexpr double kMostlyReading = 0.5;
// Other processes that use less of the busy time of a rank's cores keep it from nothing.
constexpr double kOthers = 0.1;
// If that is unknown: a rank that gets less of its cores shares them with other processes.
constexpr double kOwnCores = 0.75;
// A quota is to blame if it stops threads for at least this part of the wait for cores.
constexpr double kQuotaPart = 0.1;

// Adds what the kernel has measured.
void add_usage(const RankUsage& then, const RankUsage& now, RankTimes* times) {
  const auto time = static_cast<double>(now.at_ns() - then.at_ns());
  if (time > 0) {
    times->cpu = 1e6 * static_cast<double>(now.cpu_ms() - then.cpu_ms()) / time * times->step;
    const auto delayed = static_cast<double>(now.delayed_ns() - then.delayed_ns());
    times->delayed = std::clamp(delayed / time, 0.0, 1.0) * times->step;
    const auto stopped = static_cast<double>(now.throttled_ns() - then.throttled_ns());
    times->throttled = now.quota() > 0 && stopped > 0 && stopped >= kQuotaPart * delayed;
  }
  times->quota = now.quota();
  const auto busy = static_cast<double>(now.busy_ms() - then.busy_ms());
  const auto ours = static_cast<double>(now.ours_ms() - then.ours_ms());
  if (busy > 0) times->others = std::clamp(1 - ours / busy, 0.0, 1.0);
  times->cores = now.cores();
  times->nice = now.nice();
  for (const wire::GpuUsage& gpu : now.gpus()) {
    if (times->slow_gpu.empty()) times->slow_gpu = throttle_text(gpu.throttled());
  }
}

}  // namespace

bool RankTimes::mostly_reads() const { return making > 0 && reading / making >= kMostlyReading; }

bool RankTimes::has_its_cores() const {
  if (throttled) return false;
  if (others) return *others < kOthers;
  return cpu >= kOwnCores * cores * step;
}

std::optional<RankTimes> rank_times(const RankPoint& from, const RankPoint& to) {
  const RankSteps &now = to.steps, &then = from.steps;
  const auto steps = static_cast<double>(now.steps() - then.steps());
  const std::chrono::nanoseconds passed(now.step_at_ns() - then.step_at_ns());
  if (steps < kMinSteps || passed < kMinTime) return std::nullopt;
  const auto a_step = [&](int64_t before, int64_t after) {
    return static_cast<double>(std::max<int64_t>(0, after - before)) / steps;
  };
  RankTimes times{.rank = now.rank(),
                  .local_rank = now.local_rank(),
                  .node_rank = now.node_rank(),
                  .step = a_step(then.step_ns(), now.step_ns()),
                  .input = a_step(then.input_ns(), now.input_ns())};
  if (times.step <= 0) return std::nullopt;
  if (now.has_exposed_ns()) times.exposed = a_step(then.exposed_ns(), now.exposed_ns());
  times.exchange = a_step(then.exchange_ns(), now.exchange_ns());
  times.making = a_step(then.making_ns(), now.making_ns());
  times.reading = a_step(then.reading_ns(), now.reading_ns());
  times.data_threads = now.data_threads();
  times.reported = now.reported();
  for (int s = 0; s < now.servers().answer_ns_size(); ++s) {
    const bool known = s < then.servers().answer_ns_size();
    times.answers.push_back(known ? a_step(then.servers().answer_ns(s), now.servers().answer_ns(s))
                                  : 0);
  }
  add_usage(from.usage, to.usage, &times);
  return times;
}

}  // namespace fleet
