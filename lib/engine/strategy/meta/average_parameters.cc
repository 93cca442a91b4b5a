#include "strategy/meta/average_parameters.h"

#include "base/error.h"

namespace fleet {
namespace {

// Also those of loss scaling: a rank's own gradients overflow.
void mark_states(Program& program, SectionId optimize) {
  for (const Op& op : program.ops()) {
    if (op.section != optimize) continue;
    for (const VarId id : op.outputs) {
      if (id == kNoVar || program.var(id).kind != VarKind::kState) continue;
      if (program.var(id).copy_of == kNoVar) program.var(id).per_rank = true;
    }
  }
}

}  // namespace

void AverageParameters::groups(BuildContext& build) {
  group_ =
      build.program.add_group({.name = "localsgd", .ranks = build.context.data_parallel_ranks()});
  flag_ = build.program.add_flag("average the parameters");
}

void AverageParameters::forward(BuildContext& build) {
  build.loss_factor = 1;
  build.sums_gradients = false;
}

void AverageParameters::fuse_update(BuildContext& build) {
  Program& program = build.program;
  mark_states(program, build.optimize);
  const SectionId section = program.add_section("average", {.sync = true, .flag = flag_});
  const double part = 1.0 / build.context.data_parallel_degree();
  std::vector<VarId> averages;
  for (const VarId parameter : build.backward.parameters) {
    averages.push_back(program.emit(section, "scale", {parameter}, {{"scale", part}},
                                    program.var(parameter).name + ".average")[0]);
  }
  program.append(section, "all_reduce", averages, averages, {{"communicator", int64_t{group_}}})
      .stream = kCommunicationStream;
  for (size_t i = 0; i < averages.size(); ++i) {
    const VarId parameter = build.backward.parameters[i];
    program.append(section, "sum", {averages[i]}, {parameter});
    program.append_copy(section, parameter);
  }
}

VarId AverageParameters::append_mean(BuildContext& build, SectionId section, VarId var) const {
  Program& program = build.program;
  const double part = 1.0 / build.context.data_parallel_degree();
  const VarId mean =
      program.emit(section, "scale", {var}, {{"scale", part}}, program.var(var).name + ".mean")[0];
  program.append(section, "all_reduce", {mean}, {mean}, {{"communicator", int64_t{group_}}})
      .stream = kCommunicationStream;
  return mean;
}

std::string averaging_obstacle(const PassContext& context) {
  if (context.data_parallel_degree() <= 1) return "it needs several ranks";
  if (context.optimizer == "sgd" || context.optimizer == "momentum") return "";
  return "it needs optimizer.name sgd or momentum, but this job's is " + context.optimizer;
}

void require_positive(const std::string& message, const char* field, int value) {
  if (value >= 1) return;
  throw Error(ErrorCode::kUsage, message + "." + field + " is " + std::to_string(value), "strategy",
              "set it to 1 or more");
}

}  // namespace fleet
