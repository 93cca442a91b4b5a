#include "exec/executor.h"

#include <algorithm>

#include "exec/collective_purposes.h"
#include "exec/executor_parts.h"
#include "exec/nan_check.h"
#include "exec/shared_places.h"
#include "ops/collective.h"
#include "tensor/host.h"

namespace fleet {

static std::vector<Plan> list_of(Plan plan) {
  std::vector<Plan> plans;
  plans.push_back(std::move(plan));
  return plans;
}

Executor::Executor(Plan plan, Device& device, std::vector<Communicator*> communicators)
    : Executor(list_of(std::move(plan)), device, std::move(communicators)) {}

Executor::Executor(std::vector<Plan> plans, Device& device,
                   std::vector<Communicator*> communicators)
    : device_(device), communicators_(std::move(communicators)) {
  FLEET_CHECK(!plans.empty(), "an executor without a plan");
  for (Plan& plan : plans) {
    plans_.push_back(std::make_unique<PreparedPlan>(PreparedPlan{.plan = std::move(plan)}));
    if (plans_.size() > 1) plans_.back()->own = same_vars(program(), plans_.back()->plan.program);
  }
  allocate();
  make_streams();
  for (const auto& prepared : plans_) prepare(*prepared);
  active_.resize(program().sections().size());
}

// Memory for the largest of the Plans.
void Executor::allocate() {
  size_t persistent = 0, arena = 0, host = 0;
  std::vector<size_t> buckets;
  for (const auto& prepared : plans_) {
    const Plan& plan = prepared->plan;
    persistent = std::max(persistent, plan.persistent_bytes);
    arena = std::max(arena, plan.arena_bytes);
    host = std::max(host, plan.host_bytes);
    buckets.resize(std::max(buckets.size(), plan.bucket_bytes.size()));
    for (size_t group = 0; group < plan.bucket_bytes.size(); ++group) {
      buckets[group] = std::max(buckets[group], plan.bucket_bytes[group]);
    }
  }
  persistent_ = device_.allocate(persistent);
  arena_ = device_.allocate(arena);
  if (host > 0) host_ = device_.allocate_host(host);
  for (size_t group = 0; group < buckets.size(); ++group) {
    const size_t bytes = buckets[group];
    Communicator* communicator = bytes > 0 ? communicator_of(static_cast<GroupId>(group)) : nullptr;
    buckets_.push_back(communicator ? communicator->allocate(bytes) : device_.allocate(bytes));
  }
}

void Executor::make_streams() {
  const auto longest = std::ranges::max_element(
      plans_, {}, [](const auto& prepared) { return prepared->plan.streams(); });
  const Plan& all = (*longest)->plan;
  begin_ = device_.make_event();
  for (int i = 0; i < all.streams(); ++i) {
    size_t workspace = 0;
    for (const auto& prepared : plans_) {
      const Plan& plan = prepared->plan;
      if (i >= plan.streams()) continue;
      workspace = std::max(workspace, plan.workspace_bytes[i]);
    }
    workspaces_.push_back(device_.allocate(workspace));
    streams_.push_back(device_.make_stream(i == 0 ? "" : "comm" + std::to_string(i)));
    ends_.push_back(device_.make_event());
  }
}

void Executor::prepare(PreparedPlan& prepared) {
  const Plan& plan = prepared.plan;
  CollectivePurposes purposes(plan.program);
  for (const PlannedOp& planned : plan.ops) {
    prepared.ops.push_back(prepare_op(prepared, planned, &purposes));
  }
}

const Plan& Executor::plan(int i) const { return plans_.at(static_cast<size_t>(i))->plan; }

// Streams end before the memory that their work uses is released.
Executor::~Executor() { streams_.clear(); }

std::unique_ptr<Executor::PreparedOp> Executor::prepare_op(const PreparedPlan& prepared,
                                                           const PlannedOp& planned,
                                                           CollectivePurposes* purposes) const {
  std::vector<Argument> inputs, outputs;
  for (size_t i = 0; i < planned.op.inputs.size(); ++i) {
    inputs.push_back(own_argument(prepared, planned.op.inputs[i]));
    inputs.back().layout = planned.input_layouts[i];
  }
  for (size_t i = 0; i < planned.op.outputs.size(); ++i) {
    outputs.push_back(own_argument(prepared, planned.op.outputs[i]));
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
  step->kernel = planned.kernel->create(context);
  if (context.communicator) {
    step->kernel = with_purpose(std::move(step->kernel), purposes->next(planned.op));
  }
  return step;
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

Executor::Schedule& Executor::schedule_for(const StepInfo& info) {
  for (size_t i = 0; i < active_.size(); ++i) {
    active_[i] = program().sections()[i].when.holds(info);
  }
  auto& schedules = current().schedules;
  const auto found = schedules.find(active_);
  if (found != schedules.end()) return *found->second;
  return *(schedules[active_] = make_schedule());
}

std::unique_ptr<Executor::Schedule> Executor::make_schedule() {
  auto schedule = std::make_unique<Schedule>();
  std::vector<bool> used(streams_.size());
  const auto& ops = current().ops;
  for (const ScheduledOp& op : current().plan.schedule(active_)) {
    Item item{.step = ops[op.op].get(), .waits = {}};
    const Op& planned = item.step->planned->op;
    used[planned.stream] = true;
    if (Communicator* communicator = communicator_of(planned)) {
      schedule->communicators.insert(communicator);
    }
    for (int wait : op.waits) {
      if (!ops[wait]->done) ops[wait]->done = device_.make_event();
      item.waits.push_back(ops[wait]->done.get());
    }
    schedule->items.push_back(std::move(item));
  }
  for (size_t i = 1; i < used.size(); ++i) {
    if (used[i]) schedule->beside.push_back(static_cast<int>(i));
  }
  return schedule;
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
  std::ranges::fill(trace_ends_, StreamTimer::kNoMark);
  for (const Item& item : schedule.items) issue_one(item, info);
  for (int i : schedule.beside) {
    streams_[i]->record(*ends_[i]);
    streams_[0]->wait(*ends_[i]);
  }
}

void Executor::issue_one(const Item& item, const StepInfo& info) {
  PreparedOp& step = *item.step;
  Stream& stream = *streams_[step.planned->op.stream];
  for (Event* event : item.waits) stream.wait(*event);
  if (profiling_) {
    run_profiled(step, stream);
  } else if (trace_) {
    run_traced(step, stream, info, !item.waits.empty());
  } else {
    step.kernel->run(stream);
  }
  if (checking_) check_outputs(step, info);
  if (step.done) stream.record(*step.done);
}

void Executor::check_outputs(const PreparedOp& step, const StepInfo& info) {
  const Op& op = step.planned->op;
  const Program& own = current().plan.program;
  if (op.def->attributes.contains("peer")) return;  // waits for another rank; that one checks
  Stream& stream = *streams_[op.stream];
  const auto find = [&](VarId id) -> std::optional<NotFinite> {
    if (id == kNoVar || !is_floating(own.var(id).dtype)) return std::nullopt;
    return find_not_finite(own_argument(current(), id), device_, stream);
  };
  for (VarId id : op.outputs) {
    const auto found = find(id);
    if (!found) continue;
    std::string before;  // not written within the step: a feed or an initial value
    for (VarId input : op.inputs) {
      const bool overwritten = input != kNoVar && own_argument(current(), input).data ==
                                                      own_argument(current(), id).data;
      if (!overwritten && find(input)) before = own.var(input).name;
    }
    throw not_finite_error(own, op, id, *found, before, info);
  }
}

void Executor::synchronize() {
  for (const auto& stream : streams_) stream->synchronize();
  check_communicators();
}

}  // namespace fleet
