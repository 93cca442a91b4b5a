// The values of an Executor's variables.
#include <utility>

#include "exec/executor_parts.h"
#include "exec/initialize.h"
#include "tensor/float16.h"
#include "tensor/relayout.h"

namespace fleet {

void* Executor::address(const PlannedVar& planned) const {
  const Buffer& region = planned.region == Region::kPersistent ? persistent_
                         : planned.region == Region::kArena    ? arena_
                         : planned.region == Region::kHost     ? host_
                                                               : buckets_[planned.group];
  return static_cast<char*>(region.data()) + planned.offset;
}

Argument Executor::own_argument(const PreparedPlan& prepared, VarId own) const {
  if (own == kNoVar) return {};
  const Var& var = prepared.plan.program.var(own);
  const PlannedVar& planned = prepared.plan.vars[own];
  return {planned.used ? address(planned) : nullptr, var.dtype, var.shape, planned.layout};
}

static bool lasts(const Var& var) {
  return var.kind == VarKind::kParameter || var.kind == VarKind::kState;
}

// A Plan's variable for that of the first Plan; kNoVar: a parameter or state of the first Plan
// alone, which keeps its place there. own: PreparedPlan::own.
static VarId own_var(const Plan& plan, const std::vector<VarId>& own, VarId id,
                     const Program& first) {
  if (own.empty() || id == kNoVar) return id;
  const VarId there = own.at(id);
  const bool lacks = there == kNoVar || !plan.vars[there].used;
  if (lacks && lasts(first.var(id))) return kNoVar;
  FLEET_CHECK(there != kNoVar, "the selected plan has no '" + first.var(id).name + "'");
  return there;
}

Argument Executor::argument(VarId id) const {
  const VarId own = own_var(current().plan, current().own, id, program());
  return own == kNoVar ? own_argument(*plans_[0], id) : own_argument(current(), own);
}

const PlannedVar& Executor::planned(VarId id) const {
  const VarId own = own_var(current().plan, current().own, id, program());
  return own == kNoVar ? plan().vars[id] : current().plan.vars[own];
}

void Executor::select(int i) {
  FLEET_CHECK(i >= 0 && static_cast<size_t>(i) < plans_.size(), "no such plan");
  if (i == selected_) return;
  const auto place_in = [&](const PreparedPlan& prepared, VarId id) {
    const VarId own = own_var(prepared.plan, prepared.own, id, program());
    return own == kNoVar ? own_argument(*plans_[0], id) : own_argument(prepared, own);
  };
  PreparedPlan &from = current(), &to = *plans_[static_cast<size_t>(i)];
  for (PreparedPlan* prepared : {&from, &to}) {
    if (std::exchange(prepared->compared, true) || prepared->own.empty()) continue;
    for (VarId id = 0; id < program().var_count(); ++id) {
      if (!lasts(program().var(id)) || !plan().vars[id].used) continue;
      const VarId own = own_var(prepared->plan, prepared->own, id, program());
      if (own == kNoVar) prepared->lacking.push_back(id);
      if (place_in(*prepared, id).data != place_in(*plans_[0], id).data) {
        prepared->moved.push_back(id);
      }
    }
  }
  for (const std::vector<VarId>* moved : {&from.moved, &to.moved}) {
    for (const VarId id : *moved) {
      const Argument source = place_in(from, id), target = place_in(to, id);
      if (source.data == target.data) continue;
      device_.copy(target.data, source.data, source.bytes(), *streams_[0]);
    }
  }
  // Copies of parameters that only the new Plan has are computed before its first step.
  stale_ |= from.lacking != to.lacking || !from.moved.empty() || !to.moved.empty();
  selected_ = i;
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
    } else if (var.dtype == DType::kBFloat16) {
      std::vector<BFloat16> narrow(count);
      for (size_t i = 0; i < count; ++i) narrow[i] = own[i];
      write(id, narrow);
    } else if (var.dtype == DType::kFloat16) {
      std::vector<Float16> narrow(count);
      for (size_t i = 0; i < count; ++i) narrow[i] = own[i];
      write(id, narrow);
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
  const PlannedVar& place = planned(id);
  check_size(id, "feed", data.size(), place.bytes);
  device_.copy(address(place), data.data(), place.bytes, *streams_[0]);
}

// Memory order is logical order, without padding.
static bool is_row_major(const Argument& argument) {
  return argument.layout.is_plain() && argument.layout.elements() == argument.shape.elements();
}

std::span<const std::byte> Executor::on_host(VarId id) const {
  FLEET_CHECK(!planned(id).shared, "'" + program().var(id).name + "' was not kept for reading");
  if (device_.runs_beside_host()) return {};
  return {static_cast<const std::byte*>(address(planned(id))), argument(id).bytes()};
}

void Executor::copy_out(VarId id, HostBytes data) {
  FLEET_CHECK(!planned(id).shared, "'" + program().var(id).name + "' was not kept for reading");
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
  FLEET_CHECK(!planned(id).shared, "'" + program().var(id).name + "' exists within a step only");
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

}  // namespace fleet
