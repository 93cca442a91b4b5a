#include "exec/plan.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "exec/layout_assignment.h"
#include "exec/memory_assignment.h"

namespace fleet {
namespace {

// Which operations of other streams each operation has to wait for: the last one, per stream, that
// wrote what it reads or touched what it writes.
void assign_waits(Plan& plan) {
  struct Touch {
    std::map<int, int> writer, reader;  // stream -> last operation
  };
  std::map<VarId, Touch> touched;
  std::map<int, int> last_collective;  // stream -> operation; of the last one only
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    PlannedOp& planned = plan.ops[i];
    plan.streams = std::max(plan.streams, planned.op.stream + 1);
    std::map<int, int> wait;  // stream -> operation
    const auto after = [&](const std::map<int, int>& earlier) {
      for (const auto& [stream, op] : earlier) {
        if (stream == planned.op.stream) continue;
        wait[stream] = wait.contains(stream) ? std::max(wait[stream], op) : op;
      }
    };
    for (VarId id : planned.op.inputs) {
      if (id != kNoVar) after(touched[id].writer);
    }
    for (VarId id : planned.op.outputs) {
      if (id == kNoVar) continue;
      after(touched[id].writer);
      after(touched[id].reader);
    }
    if (planned.op.def->is_collective) {
      if (planned.op.attributes.boolean("after_previous")) after(last_collective);
      last_collective = {{planned.op.stream, static_cast<int>(i)}};
    }
    for (VarId id : planned.op.inputs) touched[id].reader[planned.op.stream] = static_cast<int>(i);
    for (VarId id : planned.op.outputs) touched[id].writer[planned.op.stream] = static_cast<int>(i);
    for (const auto& [stream, op] : wait) {
      planned.waits.push_back(op);
      plan.ops[op].signals = true;
    }
  }
}

// Evaluation goes behind training, with which it never runs: its temporaries then share the arena
// with all of training's instead of lying beside what the backward pass still needs.
void put_evaluation_last(Program& program) {
  std::stable_partition(program.ops().begin(), program.ops().end(),
                        [&](const Op& op) { return program.sections()[op.section].when.training; });
}

void mix(uint64_t& hash, const std::string& text) {  // FNV-1a
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
}

std::string mebibytes(size_t bytes) {
  std::ostringstream out;
  out.precision(1);
  out << std::fixed << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return out.str();
}

}  // namespace

Plan make_plan(Program program, const std::vector<VarId>& keep, const PlanOptions& options) {
  verify(program);
  Plan plan;
  plan.program = std::move(program);
  put_evaluation_last(plan.program);
  assign_layouts(plan, options);
  assign_memory(plan, keep);
  assign_waits(plan);
  return plan;
}

uint64_t Plan::hash() const {
  uint64_t hash = 14695981039346656037ull;
  for (const PlannedOp& planned : ops) {
    if (!planned.op.def->is_collective) continue;
    mix(hash, planned.op.type());
    for (const auto& [name, value] : planned.op.attributes.all()) mix(hash, name + text_of(value));
    for (VarId id : planned.op.inputs) {
      const Var& var = program.var(id);
      mix(hash, var.name + name_of(var.dtype) + var.shape.text() + vars[id].layout.text() +
                    std::to_string(vars[id].offset));
    }
  }
  return hash;
}

std::string Plan::text() const {
  std::ostringstream out;
  out << "memory: persistent " << mebibytes(persistent_bytes) << ", arena "
      << mebibytes(arena_bytes) << ", gradient buckets " << mebibytes(bucket_bytes)
      << ", workspace " << mebibytes(workspace_bytes) << "; streams: " << streams << "\n";
  const char* regions[] = {"persistent", "arena", "bucket"};
  for (size_t i = 0; i < ops.size(); ++i) {
    const PlannedOp& planned = ops[i];
    out << i << " [" << program.sections()[planned.op.section].name << "] " << planned.op.type();
    const auto list = [&](const std::vector<VarId>& ids, const std::vector<Layout>& layouts) {
      for (size_t k = 0; k < ids.size(); ++k) {
        if (ids[k] == kNoVar) continue;
        const PlannedVar& var = vars[ids[k]];
        out << " " << program.var(ids[k]).name << ":" << layouts[k].text() << "@"
            << regions[static_cast<int>(var.region)] << "+" << var.offset;
      }
    };
    list(planned.op.inputs, planned.input_layouts);
    out << " ->";
    list(planned.op.outputs, planned.output_layouts);
    if (planned.op.stream) out << " on stream " << planned.op.stream;
    for (int wait : planned.waits) out << " after " << wait;
    out << "\n";
  }
  return out.str();
}

}  // namespace fleet
