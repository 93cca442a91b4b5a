#include "data/policy.h"

#include <algorithm>

#include "base/error.h"
#include "base/number_text.h"
#include "base/text.h"
#include "data/pixel_scratch.h"

namespace fleet::data {
namespace {

constexpr const char* kKey = "data.augment.policy";

// As in timm, the value begins with the first digit, and a set of operations is a name: "tweights".
PolicySection section_of(const std::string& text) {
  if (text.starts_with('t')) return {"t", text.substr(1)};
  const size_t end = std::min(text.find_first_of("0123456789"), text.size());
  return {text.substr(0, end), text.substr(end)};
}

}  // namespace

Registry<PolicyDef>& policies() {
  static Registry<PolicyDef> registry("augmentation policy");
  return registry;
}

std::unique_ptr<Policy> make_policy(const std::string& text) {
  const std::vector<std::string> parts = split(text, '-');
  const std::string& name = parts.empty() ? text : parts[0];
  const PolicyDef* def = policies().find(name);
  if (!def) {
    throw Error(ErrorCode::kUsage, "unknown augmentation policy '" + name + "'", kKey,
                suggestion(name, policies().names()));
  }
  std::vector<PolicySection> sections;
  for (size_t i = 1; i < parts.size(); ++i) sections.push_back(section_of(parts[i]));
  return def->make(sections);
}

double section_number(const PolicySection& section, double least, double most) {
  double value = 0;
  if (parse_double(section.value, &value) && value >= least && value <= most) return value;
  throw Error(ErrorCode::kUsage,
              "'" + section.name + section.value + "' is not '" + section.name +
                  "' with a number from " + number_text(least) + " to " + number_text(most),
              kKey);
}

int section_integer(const PolicySection& section, int least, int most) {
  const double value = section_number(section, least, most);
  if (value == static_cast<int>(value)) return static_cast<int>(value);
  throw Error(ErrorCode::kUsage, "'" + section.name + section.value + "' is not a whole number",
              kKey);
}

void refuse_section(const PolicySection& section, const std::string& known) {
  throw Error(ErrorCode::kUsage, "unknown section '" + section.name + section.value + "'", kKey,
              known.empty() ? "this policy has none" : "known: " + known);
}

void refuse_sections(const std::vector<PolicySection>& sections) {
  if (!sections.empty()) refuse_section(sections[0], "");
}

void apply(const PolicyDraw& draw, const ImagePlanes& planes) {
  const size_t count = planes.image.count();
  if (draw.own == 0 && draw.chains.size() == 1 && draw.chains[0].weight == 1) {
    for (const ImageStep& step : draw.chains[0].steps) apply(step, planes);
    return;
  }
  const PixelScratch before(count * sizeof(float)), changed(count * sizeof(float));
  std::copy_n(planes.pixels, count, before.floats());
  for (size_t i = 0; i < count; ++i) planes.pixels[i] *= draw.own;
  for (const PolicyDraw::Chain& chain : draw.chains) {
    std::copy_n(before.floats(), count, changed.floats());
    ImagePlanes copy = planes;
    copy.pixels = changed.floats();
    for (const ImageStep& step : chain.steps) apply(step, copy);
    const float* result = changed.floats();
    for (size_t i = 0; i < count; ++i) planes.pixels[i] += chain.weight * result[i];
  }
}

}  // namespace fleet::data
