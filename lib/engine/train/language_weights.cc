#include "train/language_weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/file_status.h"
#include "base/text.h"
#include "models/text/language_family.h"
#include "models/text/language_models.h"
#include "train/initial_weights.h"
#include "train/job_task.h"
#include "train/pretrained_record.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

// Values that transformers computes and some files hold.
bool is_language_buffer(const std::string& name) {
  for (const char* ending : {".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq",
                             "embeddings.position_ids", "embeddings.token_type_ids"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

struct NamedPart {
  const WeightPart* part = nullptr;
  bool alias = false;
};

// By transformers' names: with the family's prefix, and without it.
std::map<std::string, NamedPart> parts_by_name(const std::vector<WeightPart>& parts,
                                               const std::string& base) {
  std::map<std::string, NamedPart> by_name;
  const auto add = [&](const std::string& name, const NamedPart& part) {
    by_name.emplace(name, part);
    if (name.starts_with(base)) by_name.emplace(name.substr(base.size()), part);
  };
  for (const WeightPart& part : parts) {
    add(part.name, {&part});
    for (const std::string& alias : part.aliases) add(alias, {&part, true});
  }
  return by_name;
}

// The name without wrappers of PyTorch, in today's spelling.
std::string plain_name(std::string name) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string wrapper : {"module.", "_orig_mod."}) {
      if (!name.starts_with(wrapper)) continue;
      name.erase(0, wrapper.size());
      found = true;
    }
  }
  const std::map<std::string, std::string> spellings = {{".gamma", ".weight"}, {".beta", ".bias"}};
  for (const auto& [old, today] : spellings) {
    if (name.ends_with(old)) name.replace(name.size() - old.size(), old.size(), today);
  }
  return name;
}

class PartJoiner {
 public:
  PartJoiner(const std::string& path, const std::vector<WeightPart>& parts)
      : path_(path), parts_(parts) {}

  void add(const NamedPart& named, HostTensor tensor) {
    if (named.alias) {
      found_.emplace(named.part, std::move(tensor));
    } else {
      found_.insert_or_assign(named.part, std::move(tensor));
    }
  }

  // Moves what was found to the file, under the names of parameters.
  void finish(TensorFile* file) {
    for (size_t begin = 0, end; begin < parts_.size(); begin = end) {
      end = begin + 1;
      while (end < parts_.size() && parts_[end].parameter == parts_[begin].parameter) ++end;
      const std::span<const WeightPart> of_one(&parts_[begin], end - begin);
      const auto is_found = [&](const WeightPart& part) { return found_.contains(&part); };
      if (std::ranges::none_of(of_one, is_found)) continue;
      file->tensors.insert_or_assign(of_one[0].parameter, joined(of_one));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kUsage, what, path_, "use the weights that belong to the config.json");
  }

  const HostTensor& tensor_of(const WeightPart& part) const {
    const auto found = found_.find(&part);
    if (found == found_.end()) refuse("has no '" + part.name + "'");
    const Shape& shape = found->second.shape;
    const int rows = part.transposed ? 1 : 0;
    const bool fits = shape.rank() == (part.transposed ? 2 : shape.rank()) && shape.rank() >= 1 &&
                      shape.rank() <= 2 && shape[rows] == part.rows;
    if (!fits) {
      refuse("'" + part.name + "' is " + shape.text() + ", the model's has " +
             std::to_string(part.rows) + (part.transposed ? " columns" : " rows"));
    }
    return found->second;
  }

  static TensorBytes transposed(const HostTensor& tensor) {
    const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
    const size_t size = size_of(tensor.dtype);
    const TensorBytes from = tensor.values(), to(from.size());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        std::memcpy(to.data() + static_cast<size_t>(c * rows + r) * size,
                    from.data() + static_cast<size_t>(r * columns + c) * size, size);
      }
    }
    return to;
  }

  static TensorBytes concatenated(const std::vector<HostTensor>& parts) {
    std::vector<TensorBytes> values;
    size_t bytes = 0;
    for (const HostTensor& part : parts) bytes += values.emplace_back(part.values()).size();
    const TensorBytes whole(bytes);
    char* at = whole.data();
    for (const TensorBytes& part : values) at = std::copy_n(part.data(), part.size(), at);
    return whole;
  }

  // Computes the values now, or, if those of `from` are not in memory, when they are needed.
  template <typename From, typename Values>
  static HostTensor made(DType dtype, const Shape& shape, bool later, From from, Values values) {
    HostTensor tensor{dtype, shape, {}};
    if (later) {
      tensor.load = [from = std::move(from), values] { return values(from); };
    } else {
      tensor.data = values(from);
    }
    return tensor;
  }

  HostTensor joined(std::span<const WeightPart> parts) {
    // Its shape is compared with the parameter's, which checkpoint.weights_skip may leave out.
    if (parts.size() == 1 && !parts[0].transposed) return found_.at(&parts[0]);
    const HostTensor& first = tensor_of(parts[0]);
    if (parts.size() == 1) {
      return made(first.dtype, {first.shape[1], first.shape[0]}, first.load != nullptr, first,
                  transposed);
    }
    int64_t rows = 0;
    for (const WeightPart& part : parts) rows += part.rows;
    Shape shape = first.shape;
    shape[0] = rows;
    std::vector<HostTensor> tensors;
    for (const WeightPart& part : parts) {
      const HostTensor& tensor = tensor_of(part);
      Shape same = tensor.shape;
      same[0] = rows;
      if (same != shape || tensor.dtype != first.dtype) {
        refuse("'" + part.name + "' is " + name_of(tensor.dtype) + tensor.shape.text() + ", and '" +
               parts[0].name + "' is " + name_of(first.dtype) + first.shape.text());
      }
      tensors.push_back(tensor);
    }
    return made(first.dtype, shape, first.load != nullptr, std::move(tensors), concatenated);
  }

  const std::string& path_;
  const std::vector<WeightPart>& parts_;
  std::map<const WeightPart*, HostTensor> found_;
};

// The heads that the network has and the file lacks, and the reverse. A file that has nothing of
// the network stays as it is: its names may have a prefix.
void settle_heads(const std::vector<WeightPart>& parts, const std::string& task, TensorFile* file,
                  HeadWeights* heads) {
  std::set<std::string> known;
  bool fits = false;
  for (const WeightPart& part : parts) {
    known.insert(part.parameter);
    fits |= part.outputs.empty() && file->tensors.contains(part.parameter);
    if (!part.outputs.empty() && !file->tensors.contains(part.parameter)) {
      heads->missing.insert(part.parameter);
    }
  }
  if (!fits) return heads->missing.clear();
  std::vector<std::string> unused;
  for (const auto& [name, tensor] : file->tensors) {
    if (!known.contains(name)) unused.push_back(name);
  }
  if (unused.empty()) return;
  for (const std::string& name : unused) file->tensors.erase(name);
  heads->unused.insert(unused.begin(), unused.end());
  heads->lines.push_back("weights that the task " + task + " does not use: " + join(unused, ", "));
}

// The parameters of heads that a network with these outputs lacks, under our names and
// transformers'.
std::set<std::string> heads_without(const LanguageModel& model,
                                    const std::set<std::string>& outputs) {
  std::set<std::string> names;
  for (const WeightPart& part : weight_parts(model)) names.insert({part.parameter, part.name});
  for (const WeightPart& part : weight_parts(model, outputs)) {
    names.erase(part.parameter);
    names.erase(part.name);
  }
  return names;
}

}  // namespace

std::set<std::string> unused_heads(const Job& job) {
  const std::optional<LanguageSource> source = language_source(job.model_name, job.model);
  if (!source) return {};
  return heads_without(language_model_of(*source), outputs_of(job));
}

std::string weights_in_folder(const std::string& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"}) {
    std::string path = folder + "/" + name;
    if (path_exists(path)) return path;
  }
  return "";
}

std::string model_weights(const Job& job) {
  const std::optional<LanguageSource> source = language_source(job.model_name, job.model);
  return source && !source->folder.empty() ? weights_in_folder(source->folder) : "";
}

std::vector<std::string> language_model_notes(const Job& job) {
  std::vector<std::string> notes;
  const std::optional<LanguageSource> source = language_source(job.model_name, job.model);
  if (source) language_model_of(*source, &notes);
  for (std::string& note : notes) note = source->where + ": " + note;
  return notes;
}

void fit_language_names(const LanguageModel& model, const std::string& path, TensorFile* file,
                        const std::set<std::string>* outputs) {
  const std::vector<WeightPart> parts =
      outputs ? weight_parts(model, *outputs) : weight_parts(model);
  const auto by_name = parts_by_name(parts, language_family_registry().get(model.family).base);
  PartJoiner joiner(path, parts);
  std::map<std::string, HostTensor> others;
  for (auto& [name, tensor] : file->tensors) {
    const std::string plain = plain_name(name);
    if (is_language_buffer(plain)) continue;
    if (const auto part = by_name.find(plain); part != by_name.end()) {
      joiner.add(part->second, std::move(tensor));
    } else {
      others.emplace(name, std::move(tensor));
    }
  }
  file->tensors = std::move(others);
  std::erase_if(file->foreign, [](const auto& entry) { return is_language_buffer(entry.first); });
  joiner.finish(file);
}

static TensorFile fitted_to_job(const Job& job, const std::string& path, TensorFile file,
                                HeadWeights* heads) {
  const std::optional<LanguageSource> source = language_source(job.model_name, job.model);
  if (!source) return file;
  const LanguageModel model = language_model_of(*source);
  const std::set<std::string> outputs = outputs_of(job);
  fit_language_names(model, path, &file, &outputs);
  HeadWeights unread;
  if (!heads) heads = &unread;
  heads->unused = heads_without(model, outputs);
  if (model.encoder) settle_heads(weight_parts(model, outputs), job.task, &file, heads);
  return file;
}

TensorFile read_job_weights(const Job& job, const std::string& path, HeadWeights* heads) {
  const bool average = job.checkpoint.boolean("weights_ema");
  return fitted_to_job(job, path, with_averages(path, average, read_weights), heads);
}

TensorFile open_job_weights(const Job& job, const std::string& path, HeadWeights* heads) {
  const bool average = job.checkpoint.boolean("weights_ema");
  return fitted_to_job(job, path, with_averages(path, average, open_weights), heads);
}

int64_t vocabulary_of(const Job& job) {
  const std::optional<LanguageSource> source = language_source(job.model_name, job.model);
  if (source) return language_model_of(*source).vocabulary;
  // Tables on parameter servers have rows for any ids.
  return job.model.has("ids") && job.tables.empty() ? job.model.integer("ids") : 0;
}

}  // namespace fleet
