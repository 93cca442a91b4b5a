#include "train/image_weights.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "optim/parameter_groups.h"
#include "train/checkpoint_content.h"
#include "train/dinov2_weights.h"
#include "train/image_shapes.h"
#include "train/name_prefix.h"
#include "train/tensor_values.h"

namespace fleet {
namespace {

// A place for a tensor of the file: a part of one of ours.
struct Place {
  std::string ours;
  size_t part = 0;
};
using Places = std::map<std::string, Place>;  // by the file's names

Places places_in(const LayoutNames& layout) {
  Places places;
  for (const auto& [ours, parts] : layout) {
    for (size_t part = 0; part < parts.size(); ++part) {
      if (!parts[part].name.empty()) places[parts[part].name] = {ours, part};
    }
  }
  return places;
}

template <typename Value>
std::set<std::string> keys_of(const std::map<std::string, Value>& map) {
  std::set<std::string> keys;
  for (const auto& [key, value] : map) keys.insert(key);
  return keys;
}

std::vector<int64_t> without_ones(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (const int64_t size : shape) {
    if (size != 1) sizes.push_back(size);
  }
  return sizes;
}

// Takes the shape of ours if the values are the same in the same order.
void reshape(const Shape& ours, const Shape& theirs, HostTensor* tensor) {
  const bool same = without_ones(tensor->shape) == without_ones(ours) ||
                    (tensor->shape == theirs && theirs.elements() == ours.elements());
  if (same) tensor->shape = ours;
}

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, name); });
}

class ImageFitter {
 public:
  ImageFitter(const WeightLayout& layout, const Program& program, const std::string& path,
              const ImageWeightsOptions& options, TensorFile* file)
      : layout_(layout),
        program_(program),
        path_(path),
        options_(options),
        file_(*file),
        ours_(tensors_of_network(program)),
        timm_(timm_tensors(layout, ours_)) {}

  ImageWeightsFit fit() {
    for (const auto& [name, tensor] : file_.tensors) fit_.in_file.insert(name);
    of_meta_ = fit_dinov2_file(&file_);
    if (of_meta_) fit_.lines.emplace_back("read under the names of Meta's DINOv2");
    drop_buffers();
    rename();
    for (auto& [name, tensor] : file_.tensors) {
      const auto own = ours_.find(name);
      if (own != ours_.end()) reshape(own->second, own->second, &tensor);
    }
    if (options_.resizes) fit_shapes();
    fit_head();
    return std::move(fit_);
  }

 private:
  void drop_buffers() {
    const auto is_buffer = [&](const auto& entry) {
      const auto starts = [&](const std::string& start) { return entry.first.starts_with(start); };
      if (std::any_of(layout_.unused.begin(), layout_.unused.end(), starts)) return true;
      return !ours_.contains(entry.first) &&
             std::any_of(layout_.buffers.begin(), layout_.buffers.end(),
                         [&](const std::string& end) { return entry.first.ends_with(end); });
    };
    std::erase_if(file_.tensors, is_buffer);
    std::erase_if(file_.foreign, is_buffer);
  }

  // The file's names as a third program's, in timm's words.
  std::map<std::string, std::string> respelled(const std::vector<std::string>& names) const {
    std::map<std::string, std::string> changed;
    for (const std::string& name : names) {
      std::string plain = name;
      replace_start({{"module.", ""}}, &plain);
      changed[name] = layout_.respelled(plain, timm_, names);
    }
    return changed;
  }

  void rename() {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : file_.tensors) names.push_back(name);
    const Places places = places_in(timm_);
    const std::set<std::string> known = keys_of(places);
    const size_t as_ours = likely_prefix(names, keys_of(ours_)).fits;
    const NamePrefix timm = likely_prefix(names, known);
    std::map<std::string, std::string> spelled;
    size_t as_spelled = 0;
    if (layout_.respelled) {
      spelled = respelled(names);
      for (const auto& [name, changed] : spelled) as_spelled += known.contains(changed) ? 1 : 0;
    }
    timm_names_ = timm.fits >= as_ours;
    if (as_ours >= std::max(timm.fits, as_spelled)) return;
    std::string from = "timm's";
    if (as_spelled > timm.fits) {
      from = "another program's";
      // timm has no layer that merges pixels in front of its first stage.
      of_microsoft_ = std::ranges::any_of(names, [](const std::string& name) {
        return name.find("layers.0.downsample.") != std::string::npos;
      });
    } else {
      for (const std::string& name : names) {
        spelled[name] = name.starts_with(timm.text) ? name.substr(timm.text.size()) : name;
      }
    }
    move_tensors(places, spelled);
    fit_.lines.push_back("read under " + from + " names");
  }

  void move_tensors(const Places& places, const std::map<std::string, std::string>& spelled) {
    std::map<std::string, std::map<size_t, HostTensor>> found;
    std::map<std::string, HostTensor> others;
    for (auto& [name, tensor] : file_.tensors) {
      const auto place = places.find(spelled.at(name));
      if (place == places.end()) {
        others.emplace(name, std::move(tensor));
        continue;
      }
      const Place& to = place->second;
      if (matches_any(options_.skip, name)) fit_.skipped.insert(to.ours);
      reshape_part(to, &tensor);
      found[to.ours].emplace(to.part, std::move(tensor));
    }
    file_.tensors = std::move(others);
    for (auto& [ours, parts] : found) file_.tensors[ours] = joined(ours, std::move(parts));
  }

  void reshape_part(const Place& to, HostTensor* tensor) {
    const std::vector<LayoutTensor>& parts = timm_.at(to.ours);
    const Shape& theirs = parts[to.part].shape;
    reshape(parts.size() == 1 ? ours_.at(to.ours) : theirs, theirs, tensor);
  }

  HostTensor joined(const std::string& ours, std::map<size_t, HostTensor> found) {
    const std::vector<LayoutTensor>& parts = timm_.at(ours);
    if (parts.size() == 1) return std::move(found.begin()->second);
    std::vector<float> values;
    for (size_t part = 0; part < parts.size(); ++part) {
      const auto one = found.find(part);
      if (one == found.end() && !parts[part].name.empty()) {
        throw Error(ErrorCode::kUsage, "has no '" + parts[part].name + "'", path_,
                    "use the whole file");
      }
      const std::vector<float> own =
          one == found.end()
              ? std::vector<float>(static_cast<size_t>(parts[part].shape.elements()), 0.0F)
              : floats_of(one->second);
      values.insert(values.end(), own.begin(), own.end());
    }
    Shape shape = ours_.at(ours);
    if (static_cast<int64_t>(values.size()) != shape.elements()) {
      shape = {static_cast<int64_t>(values.size())};  // refused with both shapes
    }
    return tensor_of(shape, values);
  }

  // Whose rules for other sizes hold: the record's, else by the names.
  WeightsLibrary origin() const {
    const bool recorded = options_.record && options_.record->library != WeightsLibrary::kUnknown &&
                          options_.record->library != WeightsLibrary::kOwn;
    if (recorded) return options_.record->library;
    if (of_meta_) return WeightsLibrary::kMeta;
    if (of_microsoft_) return WeightsLibrary::kMicrosoft;
    if (timm_names_) return WeightsLibrary::kTimm;
    return options_.record ? options_.record->library : WeightsLibrary::kTorchvision;
  }

  void fit_shapes() {
    ImageShapeOptions options{.path = path_, .origin = origin()};
    if (options_.record) options.image = options_.record->image;
    options.registers = ours_.contains("reg_token");
    for (std::string& line : fit_image_shapes(program_, ours_, options, &file_)) {
      fit_.lines.push_back(std::move(line));
    }
  }

  // The last layers that may start anew.
  std::set<std::string> heads() const {
    if (of_meta_ && options_.new_head) return {last_layer(program_)};
    if (!options_.new_head || !options_.record) return {};
    const std::vector<std::string>& named = options_.record->classifier;
    if (named.empty()) return {last_layer(program_)};
    std::set<std::string> layers;
    for (const std::string& name : named) {
      const std::string weight = name + ".weight";
      if (ours_.contains(weight)) layers.insert(name);
      for (const auto& [ours, parts] : timm_) {
        if (parts[0].name == weight) layers.insert(ours.substr(0, ours.rfind('.')));
      }
    }
    return layers;
  }

  void fit_head() {
    for (const std::string& layer : heads()) {
      const auto own = ours_.find(layer + ".weight");
      if (own == ours_.end()) continue;
      const auto found = file_.tensors.find(layer + ".weight");
      const bool missing = found == file_.tensors.end();
      if (missing && !of_meta_ && options_.record->classes != 0) continue;
      const Shape from = missing ? Shape{} : found->second.shape;
      if (!missing && !differs_in_rows(from, own->second)) continue;
      for (const char* end : {".weight", ".bias"}) {
        file_.tensors.erase(layer + end);
        if (ours_.contains(layer + end)) fit_.skipped.insert(layer + end);
      }
      fit_.lines.push_back("the last layer, '" + layer + "', is initialised: " +
                           (missing ? "the file has none"
                                    : "the file's has " + std::to_string(from[0]) +
                                          " classes, the job's " + std::to_string(own->second[0])));
    }
  }

  static bool differs_in_rows(const Shape& from, const Shape& to) {
    if (from.rank() != to.rank() || from.rank() < 1 || from[0] == to[0]) return false;
    Shape same = from;
    same[0] = to[0];
    return same == to;
  }

  const WeightLayout& layout_;
  const Program& program_;
  const std::string& path_;
  const ImageWeightsOptions& options_;
  TensorFile& file_;
  const TensorShapes ours_;
  const LayoutNames timm_;
  bool timm_names_ = false, of_meta_ = false, of_microsoft_ = false;
  ImageWeightsFit fit_;
};

}  // namespace

TensorShapes tensors_of_network(const Program& program) {
  TensorShapes shapes;
  for (VarId id = 0; id < program.var_count(); ++id) {
    const Var& var = program.var(id);
    if (is_saved(var) && file_of(program, var) == CheckpointFile::kModel) {
      shapes[var.name] = var.shape;
    }
  }
  return shapes;
}

std::string last_layer(const Program& program) {
  std::string last;
  for (const VarId id : program.parameters()) last = program.var(id).name;
  return last.substr(0, last.rfind('.'));
}

ImageWeightsFit fit_image_weights(const WeightLayout& layout, const Program& program,
                                  const std::string& path, const ImageWeightsOptions& options,
                                  TensorFile* file) {
  return ImageFitter(layout, program, path, options, file).fit();
}

}  // namespace fleet
