#include "train/initial_weights.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "optim/parameter_groups.h"
#include "tensor/float16.h"
#include "train/backbone_weights.h"
#include "train/checkpoint_content.h"
#include "train/image_weights.h"
#include "train/language_weights.h"
#include "train/model_card.h"
#include "train/name_prefix.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, name); });
}

std::vector<std::string> names_in(const TensorFile& file) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : file.tensors) names.push_back(name);
  for (const auto& [name, type] : file.foreign) names.push_back(name);
  return names;
}

// Removes from the file what `condition` says of a name.
template <typename Condition>
void erase_names(TensorFile* file, const Condition& condition) {
  std::erase_if(file->tensors, [&](const auto& entry) { return condition(entry.first); });
  std::erase_if(file->foreign, [&](const auto& entry) { return condition(entry.first); });
}

// Removes the prefix that hides the model's names, if all tensors have it; returns it.
std::string drop_prefix(const std::set<std::string>& known, TensorFile* file) {
  const std::string prefix = likely_prefix(names_in(*file), known).text;
  const auto has = [&](const auto& entry) { return entry.first.starts_with(prefix); };
  if (prefix.empty() || !std::all_of(file->tensors.begin(), file->tensors.end(), has)) return "";
  remove_prefix(prefix, &file->tensors);
  remove_prefix(prefix, &file->foreign);
  return prefix;
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
    if (const auto foreign = file.foreign.find(var->name); foreign != file.foreign.end()) {
      mismatches.push_back({var->name, "'" + var->name + "' is of the type " + foreign->second +
                                           ", which no parameter has"});
    } else if (found == file.tensors.end()) {
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

// The patterns to add to checkpoint.weights_skip: "'fc.*'" for fc.weight and fc.bias; "" if they
// are many.
std::string patterns_for(const std::vector<std::string>& names) {
  constexpr size_t kFew = 3;
  std::set<std::string> patterns;
  for (const std::string& name : names) {
    const size_t dot = name.rfind('.');
    patterns.insert(dot == std::string::npos ? name : name.substr(0, dot) + ".*");
  }
  if (patterns.size() > kFew) return "";
  return "'" + join(std::vector<std::string>(patterns.begin(), patterns.end()), "', '") + "'";
}

// What to do about names that differ: the most likely cause comes first.
std::string advice(const TensorFile& file, const std::vector<const Var*>& vars,
                   const std::vector<ShapeMismatch>& mismatches) {
  std::set<std::string> known;
  for (const Var* var : vars) known.insert(var->name);
  std::vector<std::string> names = names_in(file), differing;
  const std::string prefix = likely_prefix(names, known).text;
  if (!prefix.empty()) {
    std::erase_if(names, [&](const std::string& name) { return name.starts_with(prefix); });
    const std::string others = patterns_for(names);
    return "'" + prefix + "' at the start of its names is removed if all names have it: " +
           "add the others to checkpoint.weights_skip" + (others.empty() ? "" : ": " + others);
  }
  for (const ShapeMismatch& mismatch : mismatches) differing.push_back(mismatch.name);
  const std::string patterns = patterns_for(differing);
  if (!patterns.empty()) {
    return "to initialize these, add to checkpoint.weights_skip: " + patterns;
  }
  return "use weights of the same model, or add the differing names to checkpoint.weights_skip";
}

[[noreturn]] void refuse(const std::string& path, const std::vector<ShapeMismatch>& mismatches,
                         const std::string& next) {
  const std::string more =
      mismatches.size() > 1 ? " (and " + std::to_string(mismatches.size() - 1) + " more)" : "";
  throw Error(ErrorCode::kUsage, mismatches.front().what + more, path, next);
}

// Removes from the file what the patterns name. With `complete`, the model's own names stay.
void skip_in_file(const WeightsOptions& options, const std::set<std::string>& known,
                  TensorFile* file) {
  erase_names(file, [&](const std::string& name) {
    return any_matches(options.skip, name) && !(options.complete && known.contains(name));
  });
}

// Names of a file with their prefix, and without it.
std::set<std::string> with_and_without(const std::string& prefix,
                                       const std::vector<std::string>& in_file) {
  std::set<std::string> names(in_file.begin(), in_file.end());
  for (const std::string& name : in_file) {
    if (name.starts_with(prefix)) names.insert(name.substr(prefix.size()));
  }
  return names;
}

// kUsage if a pattern matches none of the model's names and none that `in_file` returns.
void check_patterns(const std::vector<std::string>& patterns, std::vector<std::string> names,
                    const std::function<std::set<std::string>()>& in_file) {
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

std::set<std::string> names_of(const std::vector<const Var*>& vars) {
  std::set<std::string> names;
  for (const Var* var : vars) names.insert(var->name);
  return names;
}

// Removes the variables that are skipped, as named in the model or in the file; returns their
// names.
std::vector<std::string> skip_vars(const std::vector<std::string>& patterns,
                                   const std::string& prefix, std::vector<const Var*>* vars) {
  std::vector<std::string> anew;
  std::erase_if(*vars, [&](const Var* var) {
    const bool skipped =
        any_matches(patterns, var->name) || any_matches(patterns, prefix + var->name);
    if (skipped) anew.push_back(var->name);
    return skipped;
  });
  return anew;
}

// Weights of which nothing is read are an error: training would start from nothing.
[[noreturn]] void refuse_unread(const std::string& path, const std::string& prefix) {
  throw Error(ErrorCode::kUsage,
              "no parameter would be read: checkpoint.weights_skip leaves all of them out", path,
              (prefix.empty() ? "" : "its names begin with '" + prefix + "', which is removed; ") +
                  std::string("name only the parameters that keep their initial values"));
}

// Removes the tensors of types that no parameter has if the model does not want them.
std::vector<std::string> ignore_foreign(const std::set<std::string>& known, TensorFile* file) {
  std::vector<std::string> ignored;
  std::erase_if(file->foreign, [&](const auto& entry) {
    const bool extra = !known.contains(entry.first);
    if (extra) ignored.push_back(entry.first + " (" + entry.second + ")");
    return extra;
  });
  if (ignored.empty()) return {};
  return {"ignored, of types that no parameter has: " + join(ignored, ", ")};
}

// Gives the file's tensors the model's names, and removes skipped names from the file and from
// `vars`. Skipped names need not have the prefix; patterns may contain it or not. Returns lines
// about what changed.
std::vector<std::string> fit_names(const std::string& path, const WeightsOptions& options,
                                   const std::set<std::string>& known, TensorFile* file,
                                   std::vector<const Var*>* vars) {
  const std::vector<std::string> in_file = names_in(*file);
  skip_in_file(options, known, file);
  const std::string prefix = drop_prefix(known, file);
  skip_in_file(options, known, file);
  if (options.headless) {
    erase_names(file, [&](const std::string& name) { return !known.contains(name); });
  }
  std::vector<std::string> lines;
  if (!prefix.empty()) lines.push_back("removed the prefix '" + prefix + "' from its names");
  if (!options.complete) {
    check_patterns(options.skip, {known.begin(), known.end()}, [&] {
      std::set<std::string> names = with_and_without(prefix, in_file);
      names.insert(options.unused.begin(), options.unused.end());
      return names;
    });
    const std::vector<std::string> anew = skip_vars(options.skip, prefix, vars);
    const auto is_parameter = [](const Var* var) { return var->kind == VarKind::kParameter; };
    if (!anew.empty()) {
      if (std::none_of(vars->begin(), vars->end(), is_parameter)) {
        refuse_unread(path, likely_prefix(in_file, known).text);
      }
      lines.push_back("parameters that keep their initial values: " + join(anew, ", "));
    }
  }
  for (std::string& line : ignore_foreign(known, file)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

void check_weights_skip(const std::vector<std::string>& patterns, const Program& program,
                        const std::function<std::set<std::string>()>& in_file) {
  const std::set<std::string> known = names_of(model_vars(program));
  check_patterns(patterns, {known.begin(), known.end()}, in_file);
}

void check_weights_skip(const Job& job, const Program& program) {
  const std::string& given = job.checkpoint.text("weights");
  const std::string path = given.empty() ? model_weights(job) : given;
  check_weights_skip(job.checkpoint.texts("weights_skip"), program, [&] {
    if (path.empty()) return unused_heads(job);
    HeadWeights heads;
    const std::vector<std::string> in_file = names_in(read_job_weights(job, path, &heads));
    const std::set<std::string> known = names_of(model_vars(program));
    heads.unused.merge(with_and_without(likely_prefix(in_file, known).text, in_file));
    return heads.unused;
  });
}

WeightsOptions weights_options(const Job& job, const std::string& path,
                               const std::map<std::string, std::string>& metadata) {
  WeightsOptions options{.skip = job.checkpoint.texts("weights_skip")};
  if (!find_weight_layout(job.model_name)) return options;
  options.network = job.model_name;
  options.record = find_record(path, &metadata);
  return options;
}

// The rules for a network of images; adds what they leave out to the options. Returns lines.
static std::vector<std::string> fit_images(const std::string& path, const Program& program,
                                           WeightsOptions* options, TensorFile* file) {
  const WeightLayout* layout =
      options->network.empty() ? nullptr : find_weight_layout(options->network);
  if (!layout) return {};
  ImageWeightsFit fit = fit_image_weights(
      *layout, program, path,
      {.record = options->record, .skip = options->skip, .new_head = !options->complete}, file);
  options->unused.merge(fit.in_file);
  options->skip.insert(options->skip.end(), fit.skipped.begin(), fit.skipped.end());
  return std::move(fit.lines);
}

// Gives the file's tensors the model's names and removes skipped ones; `vars`: the variables
// that it then fills.
static std::vector<std::string> fit_weights(const std::string& path, const WeightsOptions& given,
                                            const Program& program, TensorFile* file,
                                            std::vector<const Var*>* vars) {
  check_same_classes(read_card(file->metadata).classes, given.classes, path,
                     "use the data that the weights were trained with");
  // PyTorch also saves the number of batches with the running statistics; it is not needed here.
  erase_names(file, [](const std::string& name) { return name.ends_with(".num_batches_tracked"); });
  *vars = model_vars(program);
  WeightsOptions options = given;
  std::vector<std::string> lines = fit_images(path, program, &options, file);
  if (!options.complete) {
    BackboneFit backbone = fit_backbone(*vars, file);
    options.skip.insert(options.skip.end(), backbone.skipped.begin(), backbone.skipped.end());
    for (std::string& line : backbone.lines) lines.push_back(std::move(line));
  }
  for (std::string& line : fit_names(path, options, names_of(*vars), file, vars)) {
    lines.push_back(std::move(line));
  }
  if (const auto mismatches = mismatches_of(*file, *vars); !mismatches.empty()) {
    refuse(path, mismatches,
           options.complete
               ? "use weights of this network after its training, such as a checkpoint of the job: "
                 "a parameter without a trained value gives wrong results"
               : advice(*file, *vars, mismatches));
  }
  std::set<std::string> types;
  for (const Var* var : *vars) {
    const HostTensor& tensor = file->tensors.at(var->name);
    if (tensor.dtype != var->dtype) types.insert(name_of(tensor.dtype));
  }
  if (!types.empty()) {
    lines.push_back("converted from " +
                    join(std::vector<std::string>(types.begin(), types.end()), " and "));
  }
  return lines;
}

std::vector<std::string> check_weights(TensorFile file, const std::string& path,
                                       const WeightsOptions& options, const Program& program) {
  std::vector<const Var*> vars;
  return fit_weights(path, options, program, &file, &vars);
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

std::vector<std::string> fit_weights(const std::string& path, const WeightsOptions& options,
                                     const Program& program, TensorFile* file) {
  std::vector<const Var*> vars;
  std::vector<std::string> lines = fit_weights(path, options, program, file, &vars);
  for (const Var* var : vars) {
    HostTensor& tensor = file->tensors.at(var->name);
    if (tensor.dtype != var->dtype) tensor = converted(tensor, var->dtype);
  }
  return lines;
}

std::vector<std::string> load_weights(TensorFile file, const std::string& path,
                                      const WeightsOptions& options, Executor& executor) {
  std::vector<std::string> lines = fit_weights(path, options, executor.program(), &file);
  scatter(file, CheckpointFile::kModel, executor);
  return lines;
}

}  // namespace fleet
