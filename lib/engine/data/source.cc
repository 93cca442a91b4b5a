#include "data/source.h"

#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet::data {

Registry<SourceType>& sources() {
  static Registry<SourceType> registry("data source");
  return registry;
}

std::vector<Column> Source::labelled_images() {
  return {{.name = "image", .dtype = DType::kUInt8, .ragged = true},
          {.name = "label", .dtype = DType::kInt64}};
}

void Source::fill(int64_t index, uint64_t /*key*/, std::span<void* const> /*to*/) const {
  FLEET_CHECK(false, "fill() of a source of images: " + name(index));
}

Sample Source::read(int64_t index, std::vector<uint8_t>& /*scratch*/) const {
  FLEET_CHECK(false, "read() of a source without images: " + name(index));
}

MaskFile Source::read_mask(int64_t index, std::vector<uint8_t>& /*scratch*/) const {
  FLEET_CHECK(false, "read_mask() of a source without masks: " + name(index));
}

std::vector<std::string> Source::texts(int64_t index, const std::string& what) const {
  FLEET_CHECK(false, "texts() of a source without '" + what + "': " + name(index));
}

std::string under_root(const std::string& root, const std::string& path) {
  if (root.empty() || path.starts_with('/')) return path;
  return root.ends_with('/') ? root + path : root + "/" + path;
}

std::unique_ptr<Source> no_test_data(const SourceContext& context, const std::string& key,
                                     const std::string& why,
                                     const std::vector<std::string>& found) {
  if (context.train || !context.verbose) return nullptr;
  std::vector<std::string> names;
  for (const std::string& name : found) names.push_back(shown_path(name));
  spdlog::log(found.empty() ? spdlog::level::info : spdlog::level::warn,
              "there are no test data{}: nothing is evaluated. To evaluate, set {}{}, or "
              "data.validation_split",
              why, key, names.empty() ? "" : " (there is " + join(names, ", ") + ")");
  return nullptr;
}

void check_label(int64_t label, const SourceContext& context, const std::string& where) {
  const int64_t classes = context.classes;
  if (label == context.ignored_label) return;
  if (label >= 0 && (classes == 0 || label < classes)) return;
  throw Error(ErrorCode::kUsage, "the label " + std::to_string(label) + " is out of range", where,
              classes == 0 ? "labels start at 0"
                           : "the model has " + std::to_string(classes) +
                                 " classes: labels go from 0 to " + std::to_string(classes - 1));
}

}  // namespace fleet::data
