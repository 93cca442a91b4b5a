#include "train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kModelFile[] = "model.safetensors";
constexpr char kOptimizerFile[] = "optimizer.safetensors";
constexpr char kStateFile[] = "state.json";

// A state named "<parameter>.<something>" or "optimizer.<something>" belongs to the optimizer;
// other states (running statistics) to the model.
bool belongs_to_optimizer(const Program& program, const Var& var) {
  if (var.kind != VarKind::kState) return false;
  if (var.name.starts_with("optimizer.")) return true;  // its step counter
  const size_t dot = var.name.rfind('.');
  if (dot == std::string::npos) return true;
  const VarId owner = program.find(var.name.substr(0, dot));
  return owner != kNoVar && program.var(owner).kind == VarKind::kParameter;
}

// States that a run with a scaled loss has and one without has not; the counters only where the
// scale changes. They are no part of what was learnt: a run may have others than its checkpoint.
bool of_loss_scaling(const std::string& name) {
  return name == "optimizer.loss_scaling" || name == "optimizer.good_steps" ||
         name == "optimizer.bad_steps";
}

TensorFile gather(Executor& executor, bool optimizer) {
  TensorFile file;
  const Program& program = executor.program();
  for (VarId id = 0; id < program.var_count(); ++id) {
    const Var& var = program.var(id);
    if (!is_saved(var) || belongs_to_optimizer(program, var) != optimizer) continue;
    HostTensor tensor{var.dtype, var.shape, {}};
    tensor.data.resize(var.shape.elements() * size_of(var.dtype));
    executor.read(id, tensor.data.data());
    file.tensors.emplace(var.name, std::move(tensor));
  }
  file.metadata["format"] = "pt";
  return file;
}

// Every variable of the program on this side against the file, but for loss scaling's that only one
// of them has; kUsage at the first that does not fit.
void check_fit(const Executor& executor, const TensorFile& file, bool optimizer,
               const std::string& path) {
  const Program& program = executor.program();
  const auto misfit = [&](const std::string& what) {
    throw Error(ErrorCode::kUsage, what, path,
                "it is of another model or optimizer; give one that fits, or set checkpoint.resume "
                "to \"no\"");
  };
  for (VarId id = 0; id < program.var_count(); ++id) {
    const Var& var = program.var(id);
    if (!is_saved(var) || belongs_to_optimizer(program, var) != optimizer) continue;
    const auto found = file.tensors.find(var.name);
    if (found == file.tensors.end()) {
      if (optimizer && of_loss_scaling(var.name)) continue;
      misfit("has no '" + var.name + "'");
    }
    if (found->second.shape != var.shape || found->second.dtype != var.dtype) {
      misfit("'" + var.name + "' is " + name_of(found->second.dtype) + found->second.shape.text() +
             ", the model's is " + name_of(var.dtype) + var.shape.text());
    }
  }
  for (const auto& [name, tensor] : file.tensors) {
    const VarId id = program.find(name);
    if (id == kNoVar || !is_saved(program.var(id))) {
      if (optimizer && of_loss_scaling(name)) continue;
      misfit("has '" + name + "', which the model has not");
    }
  }
}

// Drops what the file has of loss scaling and the program has not. Returns a line about that and
// about what the program has and the file has not, which stays as it is; "" where both are alike.
std::string drop_other_loss_scaling(TensorFile& file, const Program& program) {
  std::vector<std::string> dropped, fresh;
  std::erase_if(file.tensors, [&](const auto& entry) {
    if (!of_loss_scaling(entry.first) || program.find(entry.first) != kNoVar) return false;
    dropped.push_back(entry.first);
    return true;
  });
  for (VarId id = 0; id < program.var_count(); ++id) {
    const std::string& name = program.var(id).name;
    if (of_loss_scaling(name) && !file.tensors.contains(name)) fresh.push_back(name);
  }
  std::vector<std::string> parts;
  if (!fresh.empty()) parts.push_back("started afresh: " + join(fresh, ", "));
  if (!dropped.empty()) parts.push_back("dropped: " + join(dropped, ", "));
  return parts.empty() ? "" : "loss scaling is not as in the checkpoint: " + join(parts, "; ");
}

void scatter(const TensorFile& file, Executor& executor) {
  for (const auto& [name, tensor] : file.tensors) {
    executor.write(executor.program().find(name), tensor.data.data());
  }
}

void sync_folder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) throw_errno("cannot sync the folder", path);
}

std::string name_of_step(int64_t step) {
  char name[40];
  std::snprintf(name, sizeof name, "step_%08lld", static_cast<long long>(step));
  return name;
}

// Complete checkpoints, oldest first.
std::vector<std::string> all_checkpoints(const std::string& root) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    long long step = 0;
    if (entry.is_directory() && name.starts_with("step_") && parse_int(name.substr(5), &step)) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string state_text(const TrainingPosition& position) {
  return Json{{"version", 1},
              {"step", position.step},
              {"epoch", position.epoch},
              {"batch", position.batch},
              {"seed", position.seed},
              {"global_batch", position.global_batch},
              {"model", position.model}}
             .dump(2) +
         "\n";
}

TrainingPosition parse_state(const std::string& path) {
  const auto damaged = [&](const std::string& what) {
    return Error(ErrorCode::kUsage, what, path,
                 "it is damaged or no checkpoint; remove this folder to use the one before");
  };
  if (!fs::exists(path)) throw damaged("there is no such file");
  try {
    const Json state = Json::parse(read_file(path));
    const TrainingPosition position = {state.at("step"),         state.at("epoch"),
                                       state.at("batch"),        state.at("seed"),
                                       state.at("global_batch"), state.at("model")};
    if (position.step < 0 || position.epoch < 0 || position.batch < 0) {
      throw damaged("a position below zero");
    }
    return position;
  } catch (const nlohmann::json::exception&) {
    throw damaged("not the state of a checkpoint");
  }
}

}  // namespace

std::string save_checkpoint(const std::string& root, const TrainingPosition& position,
                            Executor& executor, int keep) {
  make_directories(root);
  const std::string folder = root + "/" + name_of_step(position.step);
  const std::string aside = folder + ".part";
  fs::remove_all(aside);
  make_directories(aside);
  write_safetensors(aside + "/" + kModelFile, gather(executor, false));
  write_safetensors(aside + "/" + kOptimizerFile, gather(executor, true));
  write_file_atomically(aside + "/" + kStateFile, state_text(position));
  sync_folder(aside);
  // Where a run saved this step before, both change places at once: there is always a whole one.
  const unsigned flags = fs::exists(folder) ? RENAME_EXCHANGE : 0;
  if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, folder.c_str(), flags) != 0) {
    throw_errno("cannot rename", folder);
  }
  sync_folder(root);
  fs::remove_all(aside);
  // Older ones than this only: whatever else lies here, what was just saved stays.
  std::vector<std::string> all = all_checkpoints(root);
  std::erase_if(all, [&](const std::string& other) { return other > folder; });
  for (size_t i = 0; keep > 0 && i + keep < all.size(); ++i) fs::remove_all(all[i]);
  return folder;
}

std::optional<std::string> set_checkpoints_aside(const std::string& root) {
  if (all_checkpoints(root).empty()) return std::nullopt;
  for (int number = 1;; ++number) {
    const std::string aside = root + "." + std::to_string(number);
    if (fs::exists(aside)) continue;
    if (::rename(root.c_str(), aside.c_str()) != 0) throw_errno("cannot rename", root);
    return aside;
  }
}

std::optional<std::string> latest_checkpoint(const std::string& root) {
  const std::vector<std::string> all = all_checkpoints(root);
  if (all.empty()) return std::nullopt;
  return all.back();
}

TrainingPosition load_checkpoint(const std::string& folder, const std::string& model,
                                 Executor& executor, std::string* note) {
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::kUsage, "no such checkpoint folder", folder,
                "give the path of a folder such as step_00000120");
  }
  const TrainingPosition position = parse_state(folder + "/" + kStateFile);
  if (position.model != model) {
    throw Error(
        ErrorCode::kUsage,
        "is a checkpoint of the model '" + position.model + "', the job trains '" + model + "'",
        folder, "give one of the same model, or set checkpoint.resume to \"no\"");
  }
  const TensorFile weights = read_safetensors(folder + "/" + kModelFile);
  TensorFile states = read_safetensors(folder + "/" + kOptimizerFile);
  check_fit(executor, weights, false, folder + "/" + kModelFile);
  check_fit(executor, states, true, folder + "/" + kOptimizerFile);
  const std::string other = drop_other_loss_scaling(states, executor.program());
  if (note) *note = other;
  scatter(weights, executor);
  scatter(states, executor);
  return position;
}

void load_weights(const std::string& path, Executor& executor) {
  TensorFile file = read_safetensors(path);
  // PyTorch counts batches beside the running statistics; nothing here needs the number.
  std::erase_if(file.tensors,
                [](const auto& entry) { return entry.first.ends_with(".num_batches_tracked"); });
  check_fit(executor, file, false, path);
  scatter(file, executor);
}

}  // namespace fleet
