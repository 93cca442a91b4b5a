#include "train/language_weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/file_status.h"
#include "models/text/language_family.h"
#include "models/text/language_models.h"
#include "train/initial_weights.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

constexpr char kHead[] = "lm_head.weight", kEmbedding[] = "model.embed_tokens.weight";

// Values that transformers computes and some files hold.
bool is_language_buffer(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq");
}

// By transformers' names: with the family's prefix, and without it.
std::map<std::string, const WeightPart*> parts_by_name(const std::vector<WeightPart>& parts,
                                                       const std::string& base) {
  std::map<std::string, const WeightPart*> by_name;
  for (const WeightPart& part : parts) {
    by_name.emplace(part.name, &part);
    if (part.name.starts_with(base)) by_name.emplace(part.name.substr(base.size()), &part);
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

  void add(const WeightPart* part, HostTensor tensor) {
    found_.insert_or_assign(part, std::move(tensor));
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

  HostTensor joined(std::span<const WeightPart> parts) {
    const HostTensor& first = tensor_of(parts[0]);
    if (parts.size() == 1 && !parts[0].transposed) return first;
    if (parts.size() == 1) {
      return {first.dtype, Shape{first.shape[1], first.shape[0]}, transposed(first)};
    }
    int64_t rows = 0;
    for (const WeightPart& part : parts) rows += part.rows;
    Shape shape = first.shape;
    shape[0] = rows;
    HostTensor whole{first.dtype, shape,
                     TensorBytes(static_cast<size_t>(shape.elements()) * size_of(first.dtype))};
    char* at = whole.data.data();
    for (const WeightPart& part : parts) {
      const HostTensor& tensor = tensor_of(part);
      Shape same = tensor.shape;
      same[0] = rows;
      if (same != shape || tensor.dtype != first.dtype) {
        refuse("'" + part.name + "' is " + name_of(tensor.dtype) + tensor.shape.text() + ", and '" +
               parts[0].name + "' is " + name_of(first.dtype) + first.shape.text());
      }
      const TensorBytes values = tensor.values();
      std::memcpy(at, values.data(), values.size());
      at += values.size();
    }
    return whole;
  }

  const std::string& path_;
  const std::vector<WeightPart>& parts_;
  std::map<const WeightPart*, HostTensor> found_;
};

// A tied head is the embedding: files have either, or both.
void drop_tied_head(TensorFile* file) {
  const auto head = file->tensors.find(kHead);
  if (head == file->tensors.end()) return;
  file->tensors.emplace(kEmbedding, head->second);
  file->tensors.erase(kHead);
}

}  // namespace

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

void fit_language_names(const LanguageModel& model, const std::string& path, TensorFile* file) {
  const std::vector<WeightPart> parts = weight_parts(model);
  const auto by_name = parts_by_name(parts, language_family_registry().get(model.family).base);
  PartJoiner joiner(path, parts);
  std::map<std::string, HostTensor> others;
  for (auto& [name, tensor] : file->tensors) {
    const std::string plain = plain_name(name);
    if (is_language_buffer(plain)) continue;
    if (const auto part = by_name.find(plain); part != by_name.end()) {
      joiner.add(part->second, std::move(tensor));
    } else {
      others.emplace(plain == kHead ? plain : name, std::move(tensor));
    }
  }
  file->tensors = std::move(others);
  std::erase_if(file->foreign, [](const auto& entry) { return is_language_buffer(entry.first); });
  joiner.finish(file);
  if (model.tied) drop_tied_head(file);
}

TensorFile read_job_weights(const Job& job, const std::string& path) {
  TensorFile file = read_weights(path);
  const std::optional<LanguageSource> source = language_source(job.model_name, job.model);
  if (source) fit_language_names(language_model_of(*source), path, &file);
  return file;
}

int64_t vocabulary_of(const Job& job) {
  const std::optional<LanguageSource> source = language_source(job.model_name, job.model);
  return source ? language_model_of(*source).vocabulary : 0;
}

}  // namespace fleet
