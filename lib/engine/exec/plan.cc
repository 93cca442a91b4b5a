#include "exec/plan.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "base/text.h"
#include "exec/assignment.h"
#include "ops/collective.h"

namespace fleet {
namespace {

// Moves evaluation after training, since the two never run together: its temporaries then share the
// arena with all of training's, instead of having memory besides what the backward pass still
// needs. Operations that also run in training stay, and so do their dependencies.
void move_evaluation_to_end(Program& program) {
  std::set<VarId> read, written;  // by later operations that stay and also run outside of training
  std::vector<bool> moves(program.ops().size());
  const auto among = [](const std::vector<VarId>& ids, const std::set<VarId>& some) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](VarId id) { return id != kNoVar && some.contains(id); });
  };
  for (size_t i = program.ops().size(); i-- > 0;) {
    const Op& op = program.ops()[i];
    const Predicate& when = program.sections()[op.section].when;
    const bool outside = when.evaluation || when.sync || when.refresh;
    moves[i] = !when.training && !among(op.outputs, read) && !among(op.outputs, written) &&
               !among(op.inputs, written);
    if (moves[i] || !outside) continue;
    read.insert(op.inputs.begin(), op.inputs.end());
    written.insert(op.outputs.begin(), op.outputs.end());
  }
  std::vector<Op> ordered;
  for (const bool last : {false, true}) {
    for (size_t i = 0; i < moves.size(); ++i) {
      if (moves[i] == last) ordered.push_back(std::move(program.ops()[i]));
    }
  }
  program.ops() = std::move(ordered);
}

// Drops operations that only other ranks run, once they have taken part in the layouts.
void drop_remote_ops(Plan& plan) {
  const std::vector<Section>& sections = plan.program.sections();
  std::erase_if(plan.ops,
                [&](const PlannedOp& planned) { return sections[planned.op.section].remote; });
  for (VarId id = 0; id < plan.program.var_count(); ++id) {
    if (plan.program.var(id).remote) plan.vars[id].used = false;
  }
}

}  // namespace

Plan plan_program(Program program, const std::vector<VarId>& keep, const PlanOptions& options) {
  verify(program);
  Plan plan;
  plan.program = std::move(program);
  move_evaluation_to_end(plan.program);
  assign_layouts(plan, options);
  drop_remote_ops(plan);
  assign_memory(plan, keep);
  return plan;
}

std::vector<ScheduledOp> Plan::schedule(const std::vector<bool>& active) const {
  struct Touch {
    std::map<int, int> writer, reader;  // stream -> last operation
  };
  std::map<VarId, Touch> touched;
  std::map<int, int> last_collective;  // stream -> operation; the last collective's only
  std::vector<ScheduledOp> all;
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    const Op& op = ops[i].op;
    if (!active[op.section]) continue;
    std::map<int, int> wait;  // stream -> operation
    const auto after = [&](const std::map<int, int>& earlier) {
      for (const auto& [stream, other] : earlier) {
        if (stream == op.stream) continue;
        wait[stream] = wait.contains(stream) ? std::max(wait[stream], other) : other;
      }
    };
    for (VarId id : op.reads()) after(touched[id].writer);
    for (VarId id : op.after) after(touched[id].writer);
    for (VarId id : op.writes()) {
      after(touched[id].writer);
      after(touched[id].reader);
    }
    if (is_collective(op)) {
      if (op.attributes.boolean("after_previous")) after(last_collective);
      last_collective = {{op.stream, i}};
    }
    for (VarId id : op.inputs) touched[id].reader[op.stream] = i;
    for (VarId id : op.outputs) touched[id].writer[op.stream] = i;
    ScheduledOp scheduled{.op = i};
    for (const auto& [stream, other] : wait) scheduled.waits.push_back(other);
    all.push_back(std::move(scheduled));
  }
  return all;
}

PlannedMemory Plan::memory() const {
  PlannedMemory memory{.activations = arena_bytes, .host = host_bytes};
  for (const size_t bytes : bucket_bytes) memory.gradients += bytes;
  for (VarId id = 0; id < program.var_count(); ++id) {
    const bool reused = vars[id].region == Region::kArena || vars[id].region == Region::kHost;
    if (!vars[id].used || reused) continue;
    const bool bucket = vars[id].region == Region::kBucket;
    const VarKind kind = program.var(id).kind;
    if (bucket && kind == VarKind::kTemporary) continue;
    const size_t bytes = aligned(vars[id].bytes);
    (kind == VarKind::kParameter ? memory.parameters
     : kind == VarKind::kState   ? memory.states
                                 : memory.feeds) += bytes;
    if (bucket) memory.gradients -= bytes;
  }
  for (size_t bytes : workspace_bytes) memory.workspace += bytes;
  return memory;
}

std::string PlannedMemory::text() const {
  return "parameters " + mebibytes(parameters) + ", optimizer state " + mebibytes(states) +
         ", gradients " + mebibytes(gradients) + ", activations " + mebibytes(activations) +
         ", feeds " + mebibytes(feeds) + ", workspace " + mebibytes(workspace) +
         (host > 0 ? ", host memory " + mebibytes(host) : "");
}

std::string Plan::text() const {
  std::ostringstream out;
  out << "memory: " << memory().text() << "; streams: " << streams() << "\n";
  const char* regions[] = {"persistent", "arena", "host", "bucket"};
  for (const auto& [i, waits] : schedule(std::vector<bool>(program.sections().size(), true))) {
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
    if (is_collective(planned.op)) {
      out << " among " << group_of(program, planned.op).text();
      for (const char* end : {"root", "peer"}) {
        if (planned.op.def->attributes.contains(end)) {
          out << ", " << end << " " << planned.op.attributes.integer(end);
        }
      }
    }
    if (planned.op.stream) out << " on stream " << planned.op.stream;
    for (int wait : waits) out << " after " << wait;
    out << "\n";
  }
  return out.str();
}

}  // namespace fleet
