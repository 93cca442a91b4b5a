#include "exec/stream_order.h"

#include <algorithm>

namespace fleet {

StreamOrder::StreamOrder(const Plan& plan) : program_(plan.program), ops_(plan.ops) {
  for (const PlannedOp& planned : ops_) streams_ = std::max(streams_, planned.op.stream + 1);
  const std::vector<Section>& sections = program_.sections();
  const size_t count = sections.size();
  excluded_.resize(count * count);
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = 0; b < a; ++b) {
      const bool never = exclude(sections[a].when, sections[b].when);
      excluded_[a * count + b] = excluded_[b * count + a] = never;
    }
  }
}

bool StreamOrder::before(int a, int b) {
  const Op &first = ops_[a].op, &second = ops_[b].op;
  if (excluded_[first.section * program_.sections().size() + second.section]) return true;
  if (a >= b) return false;
  if (first.stream == second.stream) return true;
  return clocks(first.section, second.section)[b * streams_ + first.stream] >= a;
}

// Considers only operations that run whenever both sections do: additional operations only add
// orders, they never remove any.
const StreamOrder::Clocks& StreamOrder::clocks(SectionId a, SectionId b) {
  const auto [found, fresh] = clocks_.try_emplace(std::minmax(a, b));
  if (!fresh) return found->second;
  const std::vector<Section>& sections = program_.sections();
  std::vector<bool> active;
  for (size_t i = 0; i < sections.size(); ++i) {
    const auto runs_with = [&](SectionId other) {
      return static_cast<SectionId>(i) == other || sections[i].when.covers(sections[other].when);
    };
    active.push_back(runs_with(a) || runs_with(b));
  }
  return found->second = count(active);
}

StreamOrder::Clocks StreamOrder::count(const std::vector<bool>& active) const {
  struct Touch {
    std::vector<int> writer, reader;  // by stream: the last operation; empty: none
  };
  std::vector<Touch> touched(program_.var_count());
  Clocks clocks(ops_.size() * streams_, -1);
  std::vector<int> last(streams_, -1);  // last operation of each stream
  for (size_t i = 0; i < ops_.size(); ++i) {
    const Op& op = ops_[i].op;
    if (!active[op.section]) continue;
    int* clock = &clocks[i * streams_];
    const auto after = [&](int other) {
      if (other < 0) return;
      for (int s = 0; s < streams_; ++s) {
        clock[s] = std::max(clock[s], clocks[other * streams_ + s]);
      }
      const int stream = ops_[other].op.stream;
      clock[stream] = std::max(clock[stream], other);
    };
    after(last[op.stream]);
    for (VarId id : op.inputs) {
      if (id == kNoVar) continue;
      for (int other : touched[id].writer) after(other);
    }
    for (VarId id : op.after) {
      for (int other : touched[id].writer) after(other);
    }
    for (VarId id : op.outputs) {
      if (id == kNoVar) continue;
      for (int other : touched[id].writer) after(other);
      for (int other : touched[id].reader) after(other);
    }
    const auto touch = [&](std::vector<int>& side) {
      side.resize(streams_, -1);
      side[op.stream] = static_cast<int>(i);
    };
    for (VarId id : op.inputs) {
      if (id != kNoVar) touch(touched[id].reader);
    }
    for (VarId id : op.outputs) {
      if (id != kNoVar) touch(touched[id].writer);
    }
    last[op.stream] = static_cast<int>(i);
  }
  return clocks;
}

}  // namespace fleet
