#include "ops/rope_frequencies.h"

#include <algorithm>
#include <numbers>

#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

void require_rope(bool condition, const std::string& what, const std::string& hint) {
  if (!condition) throw Error(ErrorCode::kUsage, what, "rope_table", hint);
}

double yarn_mscale(double factor, double weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

}  // namespace

RopeSettings::RopeSettings(const Attributes& attributes)
    : type(attributes.text("type")),
      dim(attributes.integer("dim")),
      original(attributes.integer("original_max_position_embeddings")),
      theta(attributes.number("theta")),
      factor(attributes.number("factor")),
      low_freq_factor(attributes.number("low_freq_factor")),
      high_freq_factor(attributes.number("high_freq_factor")),
      given_attention(attributes.number("attention_factor")),
      beta_fast(attributes.number("beta_fast")),
      beta_slow(attributes.number("beta_slow")),
      mscale(attributes.number("mscale")),
      mscale_all(attributes.number("mscale_all_dim")),
      truncate(attributes.boolean("truncate")) {
  check();
}

void RopeSettings::check() const {
  static const std::vector<std::string> kTypes = {"default", "linear", "dynamic", "llama3", "yarn"};
  require_rope(std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end(),
               "unknown type '" + type + "'", "use one of " + join(kTypes, ", "));
  require_rope(dim >= 2 && dim % 2 == 0, "dim " + std::to_string(dim) + " is not a number of pairs",
               "dim is the even number of rotated elements of a head");
  require_rope(theta > 1, "theta must be above 1", "it is 10000 in most models");
  if (type == "default") return;
  require_rope(factor >= 1, "factor must be at least 1 for type '" + type + "'",
               "it is the factor of rope_parameters in config.json");
  if (type == "linear") return;
  require_rope(original > 0, "original_max_position_embeddings is missing for type '" + type + "'",
               "it is the length that the model was trained with");
  if (type == "dynamic") {
    require_rope(dim > 2, "type 'dynamic' needs a dim above 2", "use another type");
  }
  if (type == "llama3") {
    require_rope(low_freq_factor > 0 && high_freq_factor > low_freq_factor,
                 "high_freq_factor must be above low_freq_factor, and that above 0",
                 "they are 4 and 1 in Llama 3");
  }
  if (type == "yarn") {
    require_rope(given_attention >= 0, "attention_factor must not be negative",
                 "0 computes it from factor");
    require_rope(beta_fast > 0 && beta_slow > 0, "beta_fast and beta_slow must be positive",
                 "they are 32 and 1 in the paper");
  }
}

// Keeps short waves, stretches long ones by factor, and blends between.
float RopeSettings::llama3(float frequency) const {
  const auto old = static_cast<float>(original), stretch = static_cast<float>(factor);
  const auto low = static_cast<float>(low_freq_factor), high = static_cast<float>(high_freq_factor);
  const float wave = static_cast<float>(2 * std::numbers::pi) / frequency;
  if (wave < old / high) return frequency;
  if (wave > old / low) return frequency / stretch;
  const float smooth = (old / wave - low) / (high - low);
  return (1 - smooth) * frequency / stretch + smooth * frequency;
}

// yarn (Peng et al., 2023): a ramp over the pairs, from those kept to those stretched by factor.
void RopeSettings::interpolate(std::vector<float>& frequencies) const {
  const auto pair_of = [&](double rotations) {
    return static_cast<double>(dim) *
           std::log(static_cast<double>(original) / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double first = pair_of(beta_fast), last = pair_of(beta_slow);
  if (truncate) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(dim - 1));
  if (first == last) last += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float at =
        (static_cast<float>(i) - static_cast<float>(first)) / static_cast<float>(last - first);
    const float kept = 1 - std::clamp(at, 0.0f, 1.0f);
    const float power = static_cast<float>(
        std::pow(theta, static_cast<double>(static_cast<float>(2 * i) / static_cast<float>(dim))));
    frequencies[i] = 1.0f / (static_cast<float>(factor) * power) * (1 - kept) + 1.0f / power * kept;
  }
}

std::vector<float> RopeSettings::frequencies() const {
  std::vector<float> all(static_cast<size_t>(dim / 2));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = rope_frequency(theta, static_cast<int64_t>(i), dim);
    if (type == "linear") all[i] /= static_cast<float>(factor);
    if (type == "llama3") all[i] = llama3(all[i]);
  }
  if (type == "yarn") interpolate(all);
  return all;
}

float RopeSettings::attention_factor() const {
  if (type != "yarn") return 1;
  if (given_attention > 0) return static_cast<float>(given_attention);
  if (mscale != 0 && mscale_all != 0) {
    return static_cast<float>(yarn_mscale(factor, mscale) / yarn_mscale(factor, mscale_all));
  }
  return static_cast<float>(yarn_mscale(factor, 1));
}

}  // namespace fleet
