#include "strategy/sparse_rows.h"

#include <algorithm>

#include "base/log.h"
#include "ops/embedding.h"

namespace fleet {
namespace {

constexpr SectionId kOfRows = -2;  // in updated_separately: no section sums the whole gradient

[[noreturn]] void refuse(const Program& program, VarId parameter, const std::string& what,
                         const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "the sparse embedding '" + program.var(parameter).name + "'",
              next + ", or set sparse to false");
}

VarId parameter_of(const Program& program, VarId gradient) {
  const std::vector<VarId> all = program.parameters();
  const auto found =
      std::ranges::find_if(all, [&](VarId id) { return program.gradient(id) == gradient; });
  return found == all.end() ? kNoVar : *found;
}

// Strategies that divide gradients in another way need the whole.
void check_combinations(const BuildContext& build, VarId parameter) {
  const auto with = [&](bool acts, const std::string& name) {
    if (!acts) return;
    refuse(build.program, parameter, "its rows cannot be combined with " + name,
           "remove strategy." + name);
  };
  with(build.sums_on_owners, "sharding");
  with(build.context.stages > 1, "pipeline");
  with(build.update_when.every > 1, "gradient_merge");
}

// Servers hold a parameter as blocks, whose gradients are whole.
void make_whole(const BuildContext& build) {
  for (Op& op : build.program.ops()) {
    if (!op.attributes.has(kSparseGradient)) continue;
    Attributes others;
    for (const auto& [name, value] : op.attributes.all()) {
      if (name != kSparseGradient) others.set(name, value);
    }
    op.attributes = std::move(others);
    if (build.context.rank > 0) continue;
    spdlog::warn(
        "the sparse embedding '{}' is a parameter of the servers: each step pushes its whole "
        "gradient; if the section tables names it, only rows are pushed",
        build.program.var(build.program.var(op.outputs[0]).gradient_of).name);
  }
}

}  // namespace

void SparseRows::find(BuildContext& build) {
  if (build.updates_elsewhere) return make_whole(build);
  const Program& program = build.program;
  std::vector<int> readers(program.var_count());
  for (const Op& op : program.ops()) {
    for (const VarId id : op.reads()) ++readers[id];
  }
  for (const Op& op : program.ops()) {
    if (!op.attributes.has(kSparseGradient)) continue;
    const VarId parameter = program.var(op.outputs[0]).gradient_of;
    check_combinations(build, parameter);
    const bool alone = program.var(parameter).kind == VarKind::kParameter &&
                       program.gradient(parameter) == op.outputs[0] && readers[op.outputs[0]] == 0;
    if (!alone) {
      refuse(program, parameter,
             "its gradient is not that of one embedding alone: the weight has other readers, such "
             "as a tied head, or the gradient is cast",
             "use a weight of its own, without fp16_allreduce and bf16_allreduce");
    }
    gradients_[parameter] = op.outputs[0];
    build.updated_separately[parameter] = kOfRows;
  }
}

void SparseRows::exchange(BuildContext& build) const {
  if (gradients_.empty()) return;
  Program& program = build.program;
  GroupId group = -1;
  if (build.sums_gradients && build.context.data_parallel_degree() > 1) {
    group = program.add_group(
        {.name = "rows of embeddings", .ranks = build.context.data_parallel_ranks()});
  }
  std::vector<Op> ops = std::move(program.ops());
  program.ops().clear();
  for (Op& op : ops) {
    const VarId parameter =
        op.attributes.has(kSparseGradient) ? parameter_of(program, op.outputs[0]) : kNoVar;
    if (parameter == kNoVar) {
      program.ops().push_back(std::move(op));
      continue;
    }
    if (build.updated_separately.at(parameter) != kOfRows) {
      refuse(program, parameter, "its rows cannot be combined with dgc", "remove strategy.dgc");
    }
    const std::string name = program.var(parameter).name;
    Attributes attributes = {{"rows", op.attributes.integer("rows")},
                             {"padding_idx", op.attributes.integer("padding_idx")},
                             {"pooled", op.attributes.boolean("pooled")}};
    std::vector<VarId> rows = program.emit(op.section, "embedding_grad_rows",
                                           {op.inputs[0], op.inputs[1]}, attributes, name);
    if (group >= 0) {
      for (VarId& part : rows) {
        part = program.emit(op.section, "all_gather", {part}, {{"communicator", int64_t{group}}},
                            name + ".gathered")[0];
        program.ops().back().stream = kCommunicationStream;
      }
      attributes.set("pooled", false);
      attributes.set("padded", true);
      rows = program.emit(op.section, "embedding_grad_rows", rows, attributes, name);
    }
    program.set_gradient(parameter, rows[1]);
    program.var(rows[1]).gradient_of = kNoVar;  // it has neither the shape nor the layout
  }
}

}  // namespace fleet
