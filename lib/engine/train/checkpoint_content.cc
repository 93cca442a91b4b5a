#include "train/checkpoint_content.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "optim/ema.h"
#include "passes/gradients.h"

namespace fleet {

// A state named "<parameter>.<something>" or "optimizer.<something>" belongs to the optimizer;
// other states (running statistics) belong to the model.
static bool belongs_to_optimizer(const Program& program, const Var& var) {
  if (var.kind != VarKind::kState) return false;
  if (var.name.starts_with("optimizer.")) return true;  // the optimizer's step counter
  const size_t dot = var.name.rfind('.');
  if (dot == std::string::npos) return true;
  const VarId owner = program.find(var.name.substr(0, dot));
  return owner != kNoVar && program.var(owner).kind == VarKind::kParameter;
}

bool is_of_loss_scaling(const std::string& name) {
  return name == "optimizer.loss_scaling" || name == "optimizer.good_steps" ||
         name == "optimizer.bad_steps";
}

// States that only one of a checkpoint and a run may have.
static bool may_differ(const std::string& name, CheckpointFile which) {
  if (is_of_loss_scaling(name)) {
    return which == CheckpointFile::kOptimizer || which == CheckpointFile::kRank;
  }
  if (which != CheckpointFile::kOptimizer) return false;
  return name == kEmaUpdates || name.ends_with(kMergedGradient);
}

// The prefix of a variable's name in the file.
static std::string prefix_of(CheckpointFile which) {
  return which == CheckpointFile::kAverage ? kEmaPrefix : "";
}

CheckpointFile file_of(const Program& program, const Var& var) {
  if (var.per_rank) return CheckpointFile::kRank;
  if (var.name.starts_with(kEmaPrefix)) return CheckpointFile::kAverage;
  return belongs_to_optimizer(program, var) ? CheckpointFile::kOptimizer : CheckpointFile::kModel;
}

// Precedes the names of a file's variables in a shard.
static std::string shard_folder(CheckpointFile which) {
  return which == CheckpointFile::kModel     ? "model/"
         : which == CheckpointFile::kAverage ? "ema/"
                                             : "optimizer/";
}

static bool is_in(const Program& program, const Var& var, CheckpointFile which) {
  if (which == CheckpointFile::kShard) return var.owner >= 0;
  return file_of(program, var) == which;
}

TensorFile gather(Executor& executor, CheckpointFile which, bool copied, int rank) {
  TensorFile file;
  const Program& program = executor.program();
  for (VarId id = 0; id < program.var_count(); ++id) {
    const Var& var = program.var(id);
    if (!is_saved(var) || var.remote || !is_in(program, var, which)) continue;
    if (which == CheckpointFile::kShard ? var.owner != rank : var.owner >= 0) continue;
    const Argument argument = executor.argument(id);
    HostTensor tensor{var.dtype, var.shape, {}, argument.layout};
    const auto values = copied ? std::span<const std::byte>() : executor.on_host(id);
    if (!values.empty()) {
      tensor.data = TensorBytes::view(values.data(), values.size());
    } else {
      tensor.data = TensorBytes(argument.bytes());
      executor.copy_out(id, tensor.data.span());
    }
    const CheckpointFile in = file_of(program, var);
    const std::string name = var.name.substr(prefix_of(in).size());
    const bool shard = which == CheckpointFile::kShard;
    file.tensors.emplace(shard ? shard_folder(in) + name : name, std::move(tensor));
  }
  executor.synchronize();
  file.metadata["format"] = "pt";
  return file;
}

void check_fit(const Program& program, const TensorFile& file, CheckpointFile which,
               const std::string& path, const std::function<bool(const std::string&)>& may_lack) {
  const std::string prefix = prefix_of(which);
  const auto misfit = [&](const std::string& what) {
    throw Error(ErrorCode::kUsage, what, path,
                "it is of another model or optimizer; use a matching one, or set checkpoint.resume "
                "to \"no\"");
  };
  for (VarId id = 0; id < program.var_count(); ++id) {
    const Var& var = program.var(id);
    if (!is_saved(var) || file_of(program, var) != which) continue;
    const auto found = file.tensors.find(var.name.substr(prefix.size()));
    if (found == file.tensors.end()) {
      if (may_differ(var.name, which) || (may_lack && may_lack(var.name))) continue;
      misfit("has no '" + var.name + "'");
    }
    if (found->second.shape != var.shape || found->second.dtype != var.dtype) {
      misfit("'" + var.name + "' is " + name_of(found->second.dtype) + found->second.shape.text() +
             ", the model's is " + name_of(var.dtype) + var.shape.text());
    }
  }
  for (const auto& [name, tensor] : file.tensors) {
    const VarId id = program.find(prefix + name);
    const bool has = id != kNoVar && is_saved(program.var(id)) &&
                     program.var(id).per_rank == (which == CheckpointFile::kRank);
    if (!has) {
      if (may_differ(name, which)) continue;
      misfit("has '" + name + "', which the model does not have");
    }
  }
}

static bool is_zero(const HostTensor& tensor) {
  const TensorBytes values = tensor.values();
  return std::ranges::all_of(values.span(), [](char byte) { return byte == 0; });
}

std::string drop_others(TensorFile& states, TensorFile& part, const Program& program) {
  std::vector<std::string> dropped, fresh;
  bool merged = false;
  const auto drop = [&](TensorFile& file, CheckpointFile which) {
    std::erase_if(file.tensors, [&](const auto& entry) {
      const auto& [name, tensor] = entry;
      if (!may_differ(name, which)) return false;
      const VarId id = program.find(name);
      if (id != kNoVar && file_of(program, program.var(id)) == which) return false;
      if (is_of_loss_scaling(name)) dropped.push_back(name);
      merged |= name.ends_with(kMergedGradient) && !is_zero(tensor);
      return true;
    });
  };
  drop(states, CheckpointFile::kOptimizer);
  drop(part, CheckpointFile::kRank);
  for (VarId id = 0; id < program.var_count(); ++id) {
    const std::string& name = program.var(id).name;
    if (!is_of_loss_scaling(name)) continue;
    if (!states.tensors.contains(name) && !part.tensors.contains(name)) fresh.push_back(name);
  }
  std::erase_if(dropped, [&](const std::string& name) {  // it moved to the other file
    return std::ranges::find(fresh, name) != fresh.end();
  });
  std::vector<std::string> parts, lines;
  if (!fresh.empty()) parts.push_back("reset to initial values: " + join(fresh, ", "));
  if (!dropped.empty()) parts.push_back("dropped: " + join(dropped, ", "));
  if (!parts.empty()) {
    lines.push_back("loss scaling differs from the checkpoint: " + join(parts, "; "));
  }
  if (merged) lines.push_back("the gradients that it merged since its last update are dropped");
  return join(lines, "; ");
}

bool has_averages(const Program& program) { return program.find(kEmaUpdates) != kNoVar; }

void scatter(const TensorFile& file, CheckpointFile which, Executor& executor) {
  const std::string prefix = prefix_of(which);
  for (const auto& [name, tensor] : file.tensors) {
    const VarId id = executor.program().find(prefix + name);
    if (!executor.program().var(id).remote) executor.write(id, tensor.values().span());
  }
}

void add_shard(const TensorFile& shard, CheckpointFile which, TensorFile* file) {
  const std::string folder = shard_folder(which);
  for (const auto& [name, tensor] : shard.tensors) {
    if (name.starts_with(folder)) file->tensors[name.substr(folder.size())] = tensor;
  }
}

}  // namespace fleet
