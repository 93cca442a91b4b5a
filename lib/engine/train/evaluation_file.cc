#include "train/evaluation_file.h"

#include <cmath>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "data/thumbnail.h"

namespace fleet {
namespace {

constexpr int kThumbnailSide = 96;
constexpr size_t kMostOfThumbnail = 24 << 10;  // bytes; a larger one is left out
constexpr size_t kMostOfName = 200;
constexpr size_t kNamedClasses = 20;

std::string base64_text(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = 0;
    for (size_t i = 0; i < 3; ++i) {
      three = three << 8 | (at + i < bytes.size() ? static_cast<uint8_t>(bytes[at + i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) {
      const bool is_padding = at + i > bytes.size();
      text += is_padding ? '=' : digits[three >> (18 - 6 * i) & 63];
    }
  }
  return text;
}

std::string name_of_class(int64_t label, const std::vector<std::string>& classes) {
  const auto index = static_cast<size_t>(label);
  return index < classes.size() ? classes[index] : std::to_string(label);
}

// Tells which pixels of one image are in a marked cell of the network's image.
data::MarkedPixel marks_on(const PixelMarks& marks, const data::AugmentChain* chain,
                           const std::string& name) {
  if (!chain || marks.height == 0) return nullptr;
  return [&marks, chain, name, seen = std::optional<data::CropGeometry>()](
             int height, int width, double y, double x) mutable {
    if (!seen) seen = chain->set_geometry(height, width, 0, [&] { return name; });
    const double row = (y - seen->y) / seen->height, column = (x - seen->x) / seen->width;
    if (row < 0 || row >= 1 || column < 0 || column >= 1) return false;
    const auto cell = static_cast<size_t>(row * marks.height) * marks.width +
                      static_cast<size_t>(column * marks.width);
    return marks.marked[cell] != 0;
  };
}

Json sample_json(const WorstSample& sample, const EvaluatedData& data) {
  Json json = Json::object();
  const bool of_pixels = sample.wrong.height > 0;
  if (std::isfinite(sample.loss)) json[of_pixels ? "wrong" : "loss"] = sample.loss;
  json["expected"] = sample.expected;
  json["predicted"] = sample.predicted;
  if (std::isfinite(sample.probability)) json["probability"] = sample.probability;
  if (!data.source || sample.sample < 0) return json;
  std::string name = data.source->name(sample.sample);
  if (name.size() > kMostOfName) name = "..." + name.substr(name.size() - kMostOfName);
  json["name"] = name;
  const std::string picture =
      data::thumbnail(*data.source, sample.sample, kThumbnailSide, data.upright,
                      marks_on(sample.wrong, data.chain, name));
  if (!picture.empty() && picture.size() <= kMostOfThumbnail) json["jpeg"] = base64_text(picture);
  return json;
}

}  // namespace

std::string evaluation_file(const EvaluationCollector& collector, const EvaluatedData& data,
                            int64_t step, int64_t epoch) {
  const Json report = collector.report();
  if (!report.is_object()) return "";
  Json json = Json::object();
  json["step"] = step;
  json["epoch"] = epoch;
  for (const JsonMember& member : report.items()) json[member.key] = member.value;
  if (!data.classes.empty()) json["names"] = data.classes;
  Json worst = Json::array();
  for (const WorstSample& sample : collector.worst_samples()) {
    worst.push_back(sample_json(sample, data));
  }
  json["worst"] = std::move(worst);
  return json.dump_lossy() + "\n";
}

std::string small_classes_line(const std::vector<int64_t>& support,
                               const std::vector<std::string>& classes,
                               const EvaluationCollector::Few& few) {
  std::vector<std::string> small;
  for (size_t c = 0; c < support.size(); ++c) {
    if (support[c] >= few.least) continue;
    const std::string count = support[c] == 0 ? "none" : std::to_string(support[c]);
    small.push_back(name_of_class(static_cast<int64_t>(c), classes) + " (" + count + ")");
  }
  if (small.empty()) return "";
  return "classes with fewer than " + std::to_string(few.least) + " " + few.unit +
         " in the evaluation, whose metrics are uncertain: " + join_first(small, kNamedClasses);
}

}  // namespace fleet
