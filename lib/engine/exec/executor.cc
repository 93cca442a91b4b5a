#include "exec/executor.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/clock.h"
#include "base/number_text.h"
#include "comm/recorded_communicator.h"
#include "exec/collective_purposes.h"
#include "exec/initialize.h"
#include "exec/nan_check.h"
#include "observe/trace_recorder.h"
#include "ops/collective.h"
#include "tensor/host.h"
#include "tensor/relayout.h"

namespace fleet {

struct Executor::PreparedOp {
  const PlannedOp* planned = nullptr;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Event> done;  // set only if another stream waits for it
  double seconds = 0;
  int64_t calls = 0;
  uint32_t trace_name = 0;
};

struct Executor::TimedOp {
  const PreparedOp* op;
  int begin, end;  // marks of timer_
  int64_t step;
};

struct Executor::Schedule {
  struct Item {
    PreparedOp* step;
    std::vector<Event*> waits;
  };
  // Items that run one by one, or those of a region.
  struct Part {
    size_t begin, end;
    bool together;
  };
  std::vector<Item> items;
  std::vector<Part> parts;  // without a gap
  std::vector<int> beside;  // the streams it uses other than the first
  std::set<Communicator*> communicators;
  bool ran = false;
  std::unique_ptr<Recording> recording;  // the whole schedule, once it has run
  RecordedCalls recorded_calls;          // in the recording
};

Executor::Executor(Plan plan, Device& device, std::vector<Communicator*> communicators)
    : plan_(std::move(plan)),
      device_(device),
      communicators_(std::move(communicators)),
      sharing_(dynamic_cast<CoreSharing*>(&device)) {
  persistent_ = device_.allocate(plan_.persistent_bytes);
  arena_ = device_.allocate(plan_.arena_bytes);
  if (plan_.host_bytes > 0) host_ = device_.allocate_host(plan_.host_bytes);
  for (size_t group = 0; group < plan_.bucket_bytes.size(); ++group) {
    const size_t bytes = plan_.bucket_bytes[group];
    Communicator* communicator = bytes > 0 ? communicator_of(static_cast<GroupId>(group)) : nullptr;
    buckets_.push_back(communicator ? communicator->allocate(bytes) : device_.allocate(bytes));
  }
  begin_ = device_.make_event();
  for (int i = 0; i < plan_.streams(); ++i) {
    workspaces_.push_back(device_.allocate(plan_.workspace_bytes[i]));
    streams_.push_back(device_.make_stream(stream_name(i)));
    if (plan_.computes(i)) compute_streams_.push_back(streams_.back().get());
    ends_.push_back(device_.make_event());
  }
  CollectivePurposes purposes(program());
  for (const PlannedOp& planned : plan_.ops) prepare_op(planned, &purposes);
  active_.resize(program().sections().size());
}

// Computing streams that share the host's cores run on the threads of run_together().
std::string Executor::stream_name(int i) const {
  if (i == 0 || (sharing_ && plan_.computes(i))) return "";
  return (plan_.computes(i) ? "compute" : "comm") + std::to_string(i);
}

// Streams end before the memory that their work uses is released.
Executor::~Executor() { streams_.clear(); }

void Executor::prepare_op(const PlannedOp& planned, CollectivePurposes* purposes) {
  std::vector<Argument> inputs, outputs;
  for (size_t i = 0; i < planned.op.inputs.size(); ++i) {
    inputs.push_back(argument(planned.op.inputs[i]));
    inputs.back().layout = planned.input_layouts[i];
  }
  for (size_t i = 0; i < planned.op.outputs.size(); ++i) {
    outputs.push_back(argument(planned.op.outputs[i]));
    outputs.back().layout = planned.output_layouts[i];
  }
  auto step = std::make_unique<PreparedOp>();
  step->planned = &planned;
  KernelContext context{.op = planned.op,
                        .inputs = std::move(inputs),
                        .outputs = std::move(outputs),
                        .workspace = workspaces_[planned.op.stream].data(),
                        .device = device_,
                        .communicator = communicator_of(planned.op)};
  in_share(planned, [&] { step->kernel = planned.kernel->create(context); });
  if (context.communicator) {
    step->kernel = with_purpose(std::move(step->kernel), purposes->next(planned.op));
  }
  prepared_ops_.push_back(std::move(step));
}

Communicator* Executor::communicator_of(const Op& op) const {
  if (!is_collective(op)) return nullptr;
  return communicator_of(static_cast<GroupId>(op.attributes.integer("communicator")));
}

Communicator* Executor::communicator_of(GroupId group) const {
  const RankGroup& ranks = program().groups().at(group);
  const bool there = static_cast<size_t>(group) < communicators_.size();
  Communicator* communicator = there ? communicators_[group] : nullptr;
  const auto size = static_cast<size_t>(communicator ? communicator->size() : 1);
  FLEET_CHECK(size == ranks.ranks.size(),
              "a communicator of " + std::to_string(size) + " ranks for group " + ranks.text());
  return communicator;
}

void Executor::check_communicators() const {
  for (const Communicator* communicator : communicators_) {
    if (communicator) communicator->throw_if_failed();
  }
}

void* Executor::address(const PlannedVar& planned) const {
  const Buffer& region = planned.region == Region::kPersistent ? persistent_
                         : planned.region == Region::kArena    ? arena_
                         : planned.region == Region::kHost     ? host_
                                                               : buckets_[planned.group];
  return static_cast<char*>(region.data()) + planned.offset;
}

Argument Executor::argument(VarId id) const {
  if (id == kNoVar) return {};
  const Var& var = program().var(id);
  const PlannedVar& planned = plan_.vars[id];
  return {planned.used ? address(planned) : nullptr, var.dtype, var.shape, planned.layout};
}

Executor::Schedule& Executor::schedule_for(const StepInfo& info) {
  for (size_t i = 0; i < active_.size(); ++i) {
    active_[i] = program().sections()[i].when.holds(info);
  }
  const auto found = schedules_.find(active_);
  if (found != schedules_.end()) return *found->second;
  return *(schedules_[active_] = make_schedule());
}

std::unique_ptr<Executor::Schedule> Executor::make_schedule() {
  auto schedule = std::make_unique<Schedule>();
  std::vector<bool> used(streams_.size());
  for (const ScheduledOp& op : plan_.schedule(active_)) {
    Schedule::Item item{.step = prepared_ops_[op.op].get(), .waits = {}};
    const Op& planned = item.step->planned->op;
    used[planned.stream] = true;
    if (Communicator* communicator = communicator_of(planned)) {
      schedule->communicators.insert(communicator);
    }
    for (int wait : op.waits) {
      if (!prepared_ops_[wait]->done) prepared_ops_[wait]->done = device_.make_event();
      item.waits.push_back(prepared_ops_[wait]->done.get());
    }
    schedule->items.push_back(std::move(item));
  }
  for (size_t i = 1; i < used.size(); ++i) {
    if (used[i]) schedule->beside.push_back(static_cast<int>(i));
  }
  make_parts(*schedule);
  return schedule;
}

// An operation that does not compute belongs to the region around it.
void Executor::make_parts(Schedule& schedule) const {
  const auto region_of = [&](size_t i) { return schedule.items[i].step->planned->region; };
  const auto computes = [&](size_t i) {
    return plan_.computes(schedule.items[i].step->planned->op.stream);
  };
  const size_t count = schedule.items.size();
  size_t done = 0;
  for (size_t i = 0; i < count; ++i) {
    if (region_of(i) < 0) continue;
    size_t last = i;
    for (size_t k = i; k < count && (!computes(k) || region_of(k) == region_of(i)); ++k) {
      if (computes(k)) last = k;
    }
    if (done < i) schedule.parts.push_back({done, i, false});
    schedule.parts.push_back({i, last + 1, true});
    done = last + 1;
    i = last;
  }
  if (done < count) schedule.parts.push_back({done, count, false});
}

void Executor::run(const StepInfo& info) {
  if (stale_) {
    stale_ = false;
    run({.step = info.step, .refresh = true});
  }
  Schedule& schedule = schedule_for(info);
  const bool whole = recording_ && !recording_paused_ && !profiling_ && !checking_ && !trace_;
  // The first run is step by step: libraries may still initialize themselves.
  if (whole && schedule.ran && !schedule.recording) record(schedule, info);
  if (whole && schedule.recording) {
    schedule.recording->launch(*streams_[0]);
    schedule.recorded_calls.launched();
    for (Communicator* communicator : schedule.communicators) communicator->launched(*streams_[0]);
  } else {
    issue(schedule, info);
  }
  schedule.ran = true;
  if (profiling_ && !info.refresh && !info.sync) ++profiled_runs_;
}

void Executor::record(Schedule& schedule, const StepInfo& info) {
  const auto all = [&] { issue(schedule, info); };
  try {
    const RecordedCalls::Scope scope(&schedule.recorded_calls);
    schedule.recording = device_.record(*streams_[0], std::cref(all));
  } catch (const Error& error) {
    throw Error(error.code(), "the step cannot be recorded: " + error.failure(), error.where(),
                "set train.cuda_graph=false to issue its operations one by one");
  }
  if (!schedule.recording) recording_ = false;
}

void Executor::issue(Schedule& schedule, const StepInfo& info) {
  // Other streams start after all earlier work. The next step, which may overwrite what they still
  // read, starts after theirs.
  if (!schedule.beside.empty()) streams_[0]->record(*begin_);
  for (int i : schedule.beside) streams_[i]->wait(*begin_);
  const bool one_by_one = profiling_ || checking_;
  for (const Schedule::Part& part : schedule.parts) {
    const auto all = [&] { issue_part(schedule, part.begin, part.end, info); };
    if (part.together && sharing_ && !one_by_one) {
      sharing_->run_together(compute_streams_, std::cref(all));
    } else {
      all();
    }
  }
  for (int i : schedule.beside) {
    streams_[i]->record(*ends_[i]);
    streams_[0]->wait(*ends_[i]);
  }
}

void Executor::issue_part(Schedule& schedule, size_t begin, size_t end, const StepInfo& info) {
  for (size_t i = begin; i < end; ++i) {
    const Schedule::Item& item = schedule.items[i];
    PreparedOp& step = *item.step;
    Stream& stream = *streams_[step.planned->op.stream];
    for (Event* event : item.waits) stream.wait(*event);
    if (profiling_) {
      run_profiled(step, stream);
    } else if (trace_) {
      run_traced(step, stream, info);
    } else {
      start(step, stream);
    }
    if (checking_) check_outputs(step, info);
    if (step.done) stream.record(*step.done);
  }
}

// Kernels of the host compute on the thread that runs them.
void Executor::start(PreparedOp& step, Stream& stream) {
  if (step.planned->region < 0 || !sharing_) return step.kernel->run(stream);
  if (checking_) return in_share(*step.planned, [&] { step.kernel->run(stream); });
  HostStream::of(stream).enqueue([kernel = step.kernel.get(), &stream] { kernel->run(stream); });
}

void Executor::in_share(const PlannedOp& planned, const std::function<void()>& body) {
  if (planned.region < 0 || !sharing_) return body();
  sharing_->with_share(static_cast<int>(plan_.compute_streams.size()), body);
}

void Executor::check_outputs(const PreparedOp& step, const StepInfo& info) {
  const Op& op = step.planned->op;
  if (op.def->attributes.contains("peer")) return;  // waits for another rank; that one checks
  Stream& stream = *streams_[op.stream];
  const auto find = [&](VarId id) -> std::optional<NotFinite> {
    if (id == kNoVar || !is_floating(program().var(id).dtype)) return std::nullopt;
    return find_not_finite(argument(id), device_, stream);
  };
  for (VarId id : op.outputs) {
    const auto found = find(id);
    if (!found) continue;
    std::string before;  // not written within the step: a feed or an initial value
    for (VarId input : op.inputs) {
      const bool overwritten = input != kNoVar && argument(input).data == argument(id).data;
      if (!overwritten && find(input)) before = program().var(input).name;
    }
    throw not_finite_error(program(), op, id, *found, before, info);
  }
}

void Executor::synchronize() {
  for (const auto& stream : streams_) stream->synchronize();
  check_communicators();
}

void Executor::initialize(uint64_t seed) {
  std::vector<float> values;
  for (VarId id = 0; id < program().var_count(); ++id) {
    const Var& var = program().var(id);
    if (!is_saved(var) || var.remote) continue;
    const auto count = static_cast<size_t>(var.shape.elements());
    if (values.size() < count) values.resize(count);
    const auto own = std::span(values).first(count);
    draw_initial_values(var, seed, own);
    if (var.dtype == DType::kFloat32) {
      write(id, own);
    } else {
      FLEET_CHECK(var.dtype == DType::kInt64, "a state of type " + std::string(name_of(var.dtype)));
      write(id, std::vector<int64_t>(own.begin(), own.end()));
    }
  }
}

void Executor::check_size(VarId id, const char* call, size_t given, size_t needed) const {
  FLEET_CHECK(given == needed, std::string(call) + " of '" + program().var(id).name +
                                   "': " + std::to_string(given) +
                                   " bytes were given, the variable has " + std::to_string(needed));
}

// Without padding.
static size_t plain_bytes(const Argument& argument) {
  return static_cast<size_t>(argument.shape.elements()) * size_of(argument.dtype);
}

void Executor::feed(VarId id, ConstHostBytes data) {
  FLEET_CHECK(program().var(id).kind == VarKind::kFeed, program().var(id).name + " is not a feed");
  const PlannedVar& planned = plan_.vars[id];
  check_size(id, "feed", data.size(), planned.bytes);
  device_.copy(address(planned), data.data(), planned.bytes, *streams_[0]);
}

// Memory order is logical order, without padding.
static bool is_row_major(const Argument& argument) {
  return argument.layout.is_plain() && argument.layout.elements() == argument.shape.elements();
}

std::span<const std::byte> Executor::on_host(VarId id) const {
  FLEET_CHECK(!plan_.vars[id].shared, "'" + program().var(id).name + "' was not kept for reading");
  if (device_.runs_beside_host()) return {};
  return {static_cast<const std::byte*>(address(plan_.vars[id])), argument(id).bytes()};
}

void Executor::copy_out(VarId id, HostBytes data) {
  FLEET_CHECK(!plan_.vars[id].shared, "'" + program().var(id).name + "' was not kept for reading");
  const Argument from = argument(id);
  check_size(id, "copy_out", data.size(), from.bytes());
  for (size_t i = 1; i < streams_.size(); ++i) streams_[i]->synchronize();
  device_.copy(data.data(), from.data, from.bytes(), *streams_[0]);
}

void Executor::read(VarId id, HostBytes data) {
  const Argument from = argument(id);
  check_size(id, "read", data.size(), plain_bytes(from));
  const Layout plain = Layout::plain(from.shape);
  if (is_row_major(from)) {
    copy_out(id, data);
    return synchronize();
  }
  synchronize();
  if (const auto there = on_host(id); !there.empty()) {
    return relayout(from.shape, size_of(from.dtype), from.layout, there.data(), plain, data.data());
  }
  const auto raw = std::make_unique_for_overwrite<char[]>(from.bytes());
  copy_out(id, std::span(raw.get(), from.bytes()));
  synchronize();
  relayout(from.shape, size_of(from.dtype), from.layout, raw.get(), plain, data.data());
}

void Executor::write(VarId id, ConstHostBytes data) {
  const Argument to = argument(id);
  FLEET_CHECK(!plan_.vars[id].shared, "'" + program().var(id).name + "' exists within a step only");
  check_size(id, "write", data.size(), plain_bytes(to));
  const Layout plain = Layout::plain(to.shape);
  synchronize();
  stale_ = true;
  if (!on_host(id).empty()) {
    return relayout(to.shape, size_of(to.dtype), plain, data.data(), to.layout, to.data);
  }
  std::unique_ptr<char[]> raw;
  if (!is_row_major(to)) {
    raw = std::make_unique_for_overwrite<char[]>(to.bytes());
    relayout(to.shape, size_of(to.dtype), plain, data.data(), to.layout, raw.get());
  }
  device_.copy(to.data, raw ? raw.get() : data.data(), to.bytes(), *streams_[0]);
  streams_[0]->synchronize();
}

void Executor::set_profiling(bool on) {
  profiling_ = on;
  profiled_runs_ = 0;
  for (const auto& step : prepared_ops_) {
    step->seconds = 0;
    step->calls = 0;
  }
}

void Executor::run_profiled(PreparedOp& step, Stream& stream) {
  const auto start = std::chrono::steady_clock::now();
  in_share(*step.planned, [&] { step.kernel->run(stream); });
  if (plan_.computes(step.planned->op.stream)) stream.synchronize();
  step.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++step.calls;
}

void Executor::set_trace(TraceRecorder* trace, int64_t steps) {
  if (timer_) add_device_times();
  trace_ = trace;
  if (!trace) return;
  for (const auto& step : prepared_ops_) {
    const Op& op = step->planned->op;
    const VarId out = op.outputs.empty() ? kNoVar : op.outputs[0];
    step->trace_name =
        trace->add_name("operation", op.type(), out == kNoVar ? "" : program().var(out).name);
  }
  trace_tracks_.clear();
  for (int i = 0; i < plan_.streams(); ++i) {
    const std::string kind = plan_.computes(i) ? "computing" : "communication";
    trace_tracks_.push_back(trace->add_track("stream " + std::to_string(i) + ": " + kind));
  }
  trace_begins_.assign(streams_.size(), 0);
  if (!device_.runs_beside_host()) return;
  constexpr size_t kMaxOps = 100'000;
  const size_t ops = std::min(kMaxOps, prepared_ops_.size() * static_cast<size_t>(steps));
  timer_ = make_stream_timer(device_, 2 * ops);
  timed_ops_.clear();
  timed_ops_.reserve(ops);
}

// Stamps are work of the operation's own stream: they take the time there, and wait for nothing.
void Executor::run_traced(PreparedOp& step, Stream& stream, const StepInfo& info) {
  const int number = step.planned->op.stream;
  if (timer_) {
    TimedOp timed{.op = &step, .begin = timer_->mark(stream), .end = -1, .step = info.step};
    start(step, stream);
    timed.end = timer_->mark(stream);
    if (timed.end >= 0) timed_ops_.push_back(timed);
    return;
  }
  if (device_.runs_beside_host()) return start(step, stream);
  HostStream& host = HostStream::of(stream);
  int64_t* begin = &trace_begins_[static_cast<size_t>(number)];
  host.enqueue([begin] { *begin = monotonic_ns(); });
  start(step, stream);
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
  for (const auto& step : prepared_ops_)
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
  for (const auto& step : prepared_ops_) {
    Row& row = rows[step->planned->op.type()];
    row.type = step->planned->op.type();
    row.seconds += step->seconds;
    row.calls += step->calls;
    total += step->seconds;
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
