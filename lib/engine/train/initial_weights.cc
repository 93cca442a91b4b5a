#include "train/initial_weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "optim/parameter_groups.h"
#include "tensor/float16.h"
#include "train/checkpoint_content.h"
#include "train/model_card.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

// Prefixes that wrappers of PyTorch put before every name.
constexpr const char* kPrefixes[] = {"module.", "_orig_mod.", "model."};

bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, name); });
}

// Drops the prefixes that all names have, and returns them.
std::string drop_prefixes(TensorFile* file) {
  std::string dropped;
  for (bool found = true; found && !file->tensors.empty();) {
    found = false;
    for (const std::string prefix : kPrefixes) {
      const auto has = [&](const auto& entry) { return entry.first.starts_with(prefix); };
      if (!std::all_of(file->tensors.begin(), file->tensors.end(), has)) continue;
      std::map<std::string, HostTensor> renamed;
      for (auto& [name, tensor] : file->tensors) {
        renamed.emplace(name.substr(prefix.size()), std::move(tensor));
      }
      file->tensors = std::move(renamed);
      dropped += prefix;
      found = true;
    }
  }
  return dropped;
}

template <typename From>
void convert_from(const HostTensor& tensor, HostTensor* to) {
  const auto* from = reinterpret_cast<const From*>(tensor.data.data());
  const auto count = static_cast<size_t>(tensor.shape.elements());
  const auto write = [&]<typename To>(To* target) {
    for (size_t i = 0; i < count; ++i) target[i] = static_cast<To>(static_cast<float>(from[i]));
  };
  to->data = TensorBytes(count * size_of(to->dtype));
  char* data = to->data.data();
  if (to->dtype == DType::kFloat32) write(reinterpret_cast<float*>(data));
  if (to->dtype == DType::kFloat64) write(reinterpret_cast<double*>(data));
  if (to->dtype == DType::kFloat16) write(reinterpret_cast<Float16*>(data));
  if (to->dtype == DType::kBFloat16) write(reinterpret_cast<BFloat16*>(data));
}

// The variables that a file of weights may hold.
std::vector<const Var*> model_vars(const Program& program) {
  std::vector<const Var*> vars;
  for (VarId id = 0; id < program.var_count(); ++id) {
    const Var& var = program.var(id);
    if (is_saved(var) && file_of(program, var) == CheckpointFile::kModel) vars.push_back(&var);
  }
  return vars;
}

struct ShapeMismatch {
  std::string name, what;
};

// Mismatches; names in the file that are not in the model come last.
std::vector<ShapeMismatch> mismatches_of(const TensorFile& file,
                                         const std::vector<const Var*>& vars) {
  std::vector<ShapeMismatch> mismatches;
  std::set<std::string> known;
  for (const Var* var : vars) {
    known.insert(var->name);
    const auto found = file.tensors.find(var->name);
    if (found == file.tensors.end()) {
      mismatches.push_back({var->name, "has no '" + var->name + "'"});
    } else if (const HostTensor& tensor = found->second; tensor.shape != var->shape) {
      mismatches.push_back({var->name, "'" + var->name + "' is " + tensor.shape.text() +
                                           ", the model's is " + var->shape.text()});
    } else if (tensor.dtype != var->dtype &&
               !(is_floating(tensor.dtype) && is_floating(var->dtype))) {
      mismatches.push_back({var->name, "'" + var->name + "' is of " + name_of(tensor.dtype) +
                                           ", the model's of " + name_of(var->dtype)});
    }
  }
  for (const auto& [name, tensor] : file.tensors) {
    if (!known.contains(name))
      mismatches.push_back({name, "has '" + name + "', which the model does not have"});
  }
  return mismatches;
}

// "fc.*" for fc.weight and fc.bias.
std::vector<std::string> patterns_of(const std::vector<ShapeMismatch>& mismatches) {
  std::set<std::string> patterns;
  for (const ShapeMismatch& mismatch : mismatches) {
    const size_t dot = mismatch.name.rfind('.');
    patterns.insert(dot == std::string::npos ? mismatch.name : mismatch.name.substr(0, dot) + ".*");
  }
  return {patterns.begin(), patterns.end()};
}

[[noreturn]] void refuse(const std::string& path, const std::vector<ShapeMismatch>& mismatches,
                         bool complete) {
  const std::string more =
      mismatches.size() > 1 ? " (and " + std::to_string(mismatches.size() - 1) + " more)" : "";
  if (complete) {
    throw Error(ErrorCode::kUsage, mismatches.front().what + more, path,
                "use weights of this network after its training, such as a checkpoint of the job: "
                "a parameter without a trained value gives wrong results");
  }
  constexpr size_t kFew = 3;
  const std::vector<std::string> patterns = patterns_of(mismatches);
  const std::string next =
      patterns.size() <= kFew
          ? "to initialize these, add to checkpoint.weights_skip: '" + join(patterns, "', '") + "'"
          : "use weights of the same model, or add the differing names to checkpoint.weights_skip";
  throw Error(ErrorCode::kUsage, mismatches.front().what + more, path, next);
}

// Removes what the patterns name and the model does not have.
void skip_extra(const std::vector<std::string>& patterns, const std::vector<const Var*>& vars,
                TensorFile* file) {
  std::erase_if(file->tensors, [&](const auto& entry) {
    const auto is_it = [&](const Var* var) { return var->name == entry.first; };
    return any_matches(patterns, entry.first) && std::none_of(vars.begin(), vars.end(), is_it);
  });
}

std::set<std::string> names_in(const TensorFile& file) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : file.tensors) names.insert(name);
  return names;
}

// Removes the skipped tensors; returns lines about them.
std::vector<std::string> skip(const std::vector<std::string>& patterns, TensorFile* file,
                              std::vector<const Var*>* vars) {
  std::vector<std::string> lines, anew;
  std::erase_if(*vars, [&](const Var* var) {
    const bool skipped = any_matches(patterns, var->name);
    if (skipped) anew.push_back(var->name);
    return skipped;
  });
  std::erase_if(file->tensors,
                [&](const auto& entry) { return any_matches(patterns, entry.first); });
  if (!anew.empty())
    lines.push_back("parameters that keep their initial values: " + join(anew, ", "));
  return lines;
}

}  // namespace

void check_weights_skip(const std::vector<std::string>& patterns, const Program& program,
                        const std::function<std::set<std::string>()>& in_file) {
  std::vector<std::string> names;
  for (const Var* var : model_vars(program)) names.push_back(var->name);
  std::optional<std::set<std::string>> more;
  for (const std::string& pattern : patterns) {
    const auto named = [&](const std::string& name) { return matches_pattern(pattern, name); };
    if (std::any_of(names.begin(), names.end(), named)) continue;
    if (!more) more = in_file();
    if (std::any_of(more->begin(), more->end(), named)) continue;
    names.insert(names.end(), more->begin(), more->end());
    throw Error(ErrorCode::kUsage, "no parameter matches '" + pattern + "'",
                "checkpoint.weights_skip", hint_for_pattern(pattern, names));
  }
}

void check_weights_skip(const Job& job, const Program& program) {
  const std::string& path = job.checkpoint.text("weights");
  check_weights_skip(job.checkpoint.texts("weights_skip"), program, [&] {
    if (path.empty()) return std::set<std::string>();
    TensorFile file = read_weights(path);
    std::set<std::string> names = names_in(file);
    drop_prefixes(&file);
    names.merge(names_in(file));
    return names;
  });
}

HostTensor converted(const HostTensor& tensor, DType dtype) {
  if (tensor.dtype == dtype) return tensor;
  FLEET_CHECK(is_floating(tensor.dtype) && is_floating(dtype), "types that are not floating-point");
  HostTensor to{dtype, tensor.shape, {}};
  switch (tensor.dtype) {
    case DType::kFloat64:
      convert_from<double>(tensor, &to);
      break;
    case DType::kFloat16:
      convert_from<Float16>(tensor, &to);
      break;
    case DType::kBFloat16:
      convert_from<BFloat16>(tensor, &to);
      break;
    default:
      convert_from<float>(tensor, &to);
  }
  return to;
}

std::vector<std::string> load_weights(const std::string& path, const WeightsOptions& options,
                                      Executor& executor) {
  return load_weights(read_weights(path), path, options, executor);
}

std::vector<std::string> load_weights(TensorFile file, const std::string& path,
                                      const WeightsOptions& options, Executor& executor) {
  check_same_classes(read_card(file.metadata).classes, options.classes, path,
                     "use the data that the weights were trained with");
  std::vector<std::string> lines;
  std::set<std::string> names = names_in(file);
  if (const std::string dropped = drop_prefixes(&file); !dropped.empty()) {
    lines.push_back("removed the prefix '" + dropped + "' from its names");
    names.merge(names_in(file));
  }
  if (!options.complete) {
    check_weights_skip(options.skip, executor.program(), [&] { return names; });
  }
  // PyTorch also saves the number of batches with the running statistics; it is not needed here.
  std::erase_if(file.tensors,
                [](const auto& entry) { return entry.first.ends_with(".num_batches_tracked"); });
  std::vector<const Var*> vars = model_vars(executor.program());
  if (options.complete) {
    skip_extra(options.skip, vars, &file);
  } else {
    for (std::string& line : skip(options.skip, &file, &vars)) lines.push_back(std::move(line));
  }
  if (const auto mismatches = mismatches_of(file, vars); !mismatches.empty())
    refuse(path, mismatches, options.complete);
  std::set<std::string> types;
  for (const Var* var : vars) {
    HostTensor& tensor = file.tensors.at(var->name);
    if (tensor.dtype == var->dtype) continue;
    types.insert(name_of(tensor.dtype));
    tensor = converted(tensor, var->dtype);
  }
  if (!types.empty()) {
    lines.push_back("converted from " +
                    join(std::vector<std::string>(types.begin(), types.end()), " and "));
  }
  scatter(file, CheckpointFile::kModel, executor);
  return lines;
}

}  // namespace fleet
