// Times of an Executor's operations.
#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/number_text.h"
#include "exec/executor_parts.h"
#include "observe/trace_recorder.h"
#include "tensor/host.h"

namespace fleet {

void Executor::set_profiling(bool on) {
  profiling_ = on;
  profiled_runs_ = 0;
  for (const auto& prepared : plans_) {
    for (const auto& step : prepared->ops) {
      step->seconds = 0;
      step->calls = 0;
    }
  }
}

void Executor::run_profiled(PreparedOp& step, Stream& stream) {
  const auto start = std::chrono::steady_clock::now();
  step.kernel->run(stream);
  if (current().plan.computes(step.planned->op.stream)) stream.synchronize();
  step.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++step.calls;
}

void Executor::set_trace(TraceRecorder* trace, int64_t steps) {
  if (timer_) add_device_times();
  trace_ = trace;
  if (!trace) return;
  size_t most_ops = 0;
  for (const auto& prepared : plans_) {
    for (const auto& step : prepared->ops) {
      const Op& op = step->planned->op;
      const VarId out = op.outputs.empty() ? kNoVar : op.outputs[0];
      step->trace_name = trace->add_name("operation", op.type(),
                                         out == kNoVar ? "" : prepared->plan.program.var(out).name);
    }
    most_ops = std::max(most_ops, prepared->ops.size());
  }
  trace_tracks_.clear();
  for (int i = 0; i < static_cast<int>(streams_.size()); ++i) {
    const bool computes = std::ranges::any_of(
        plans_, [&](const auto& prepared) { return prepared->plan.computes(i); });
    const std::string kind = computes ? "computing" : "communication";
    trace_tracks_.push_back(trace->add_track("stream " + std::to_string(i) + ": " + kind));
  }
  trace_begins_.assign(streams_.size(), 0);
  trace_ends_.assign(streams_.size(), StreamTimer::kNoMark);
  if (!device_.runs_beside_host()) return;
  constexpr size_t kMaxOps = 100'000;
  const size_t ops = std::min(kMaxOps, most_ops * static_cast<size_t>(steps));
  timer_ = make_stream_timer(device_, 2 * ops);
  timed_ops_.clear();
  timed_ops_.reserve(ops);
}

// Marks are work of the operation's own stream: they take the time there, and wait for nothing.
// They cost time, too: the end of an operation is also the beginning of the next one, if the stream
// neither waited nor ran dry between them.
void Executor::run_timed(PreparedOp& step, Stream& stream, const StepInfo& info, bool waited) {
  int& last = trace_ends_[static_cast<size_t>(step.planned->op.stream)];
  const bool follows = last != StreamTimer::kNoMark && !waited && !timer_->reached(last);
  const int begin = follows ? last : timer_->mark(stream);
  step.kernel->run(stream);
  last = timer_->mark(stream);
  if (last != StreamTimer::kNoMark)
    timed_ops_.push_back({.op = &step, .begin = begin, .end = last, .step = info.step});
}

void Executor::run_traced(PreparedOp& step, Stream& stream, const StepInfo& info, bool waited) {
  const int number = step.planned->op.stream;
  if (timer_) return run_timed(step, stream, info, waited);
  if (device_.runs_beside_host()) return step.kernel->run(stream);
  HostStream& host = HostStream::of(stream);
  int64_t* begin = &trace_begins_[static_cast<size_t>(number)];
  host.enqueue([begin] { *begin = monotonic_ns(); });
  step.kernel->run(stream);
  host.enqueue([begin, trace = trace_, track = trace_tracks_[static_cast<size_t>(number)],
                name = step.trace_name,
                at = info.step] { trace->add(track, name, *begin, monotonic_ns(), at); });
}

void Executor::add_device_times() {
  const std::vector<int64_t> times = timer_->times();
  for (const TimedOp& timed : timed_ops_) {
    const auto stream = static_cast<size_t>(timed.op->planned->op.stream);
    trace_->add(trace_tracks_[stream], timed.op->trace_name,
                times[static_cast<size_t>(timed.begin)], times[static_cast<size_t>(timed.end)],
                timed.step);
  }
  timed_ops_.clear();
  timer_.reset();
}

std::vector<double> Executor::profiled_seconds() const {
  std::vector<double> seconds;
  for (const auto& step : plans_[0]->ops)
    seconds.push_back(step->seconds / std::max(profiled_runs_, 1));
  return seconds;
}

std::string Executor::profile() const {
  struct Row {
    std::string type;
    double seconds = 0;
    int64_t calls = 0;
  };
  std::map<std::string, Row> rows;
  double total = 0;
  for (const auto& prepared : plans_) {
    for (const auto& step : prepared->ops) {
      Row& row = rows[step->planned->op.type()];
      row.type = step->planned->op.type();
      row.seconds += step->seconds;
      row.calls += step->calls;
      total += step->seconds;
    }
  }
  std::vector<Row> order;
  for (const auto& [type, row] : rows) order.push_back(row);
  std::sort(order.begin(), order.end(),
            [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  const double runs = std::max(profiled_runs_, 1);
  std::string text;
  for (const Row& row : order) {
    if (row.calls == 0) continue;
    text += format_printf("%-32s %6.0f calls %10.3f ms/run %5.1f %%\n", row.type.c_str(),
                          row.calls / runs, 1e3 * row.seconds / runs,
                          100 * row.seconds / std::max(total, 1e-12));
  }
  return text;
}

}  // namespace fleet
