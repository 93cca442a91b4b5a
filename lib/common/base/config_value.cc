#include "base/config_value.h"

namespace fleet {
namespace config {

static Json to_json(const Scalar& scalar) {
  return std::visit([](const auto& value) { return Json(value); }, scalar);
}

std::optional<Scalar> to_scalar(const Json& json) {
  if (json.is_boolean()) return Scalar(json.get<bool>());
  // An unsigned one may be too large for int64_t.
  const bool fits = !json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX;
  if (json.is_number_integer() && fits) return Scalar(json.get<int64_t>());
  if (json.is_number()) return Scalar(json.get<double>());
  if (json.is_string()) return Scalar(json.get<std::string>());
  return std::nullopt;
}

std::optional<ConfigValue> to_value(const Json& json, bool* objects) {
  *objects = false;
  if (auto scalar = to_scalar(json)) return ConfigValue{*scalar};
  if (!json.is_array()) return std::nullopt;
  std::vector<Scalar> list;
  for (const Json& element : json) {
    const auto scalar =
        element.is_object() ? std::optional(Scalar(element.dump_lossy())) : to_scalar(element);
    if (!scalar) return std::nullopt;
    *objects |= element.is_object();
    list.push_back(*scalar);
  }
  return ConfigValue{list};
}

}  // namespace config

std::string ConfigValue::text() const {
  if (const Scalar* scalar = std::get_if<Scalar>(&value))
    return config::to_json(*scalar).dump_lossy();
  Json array = Json::array();
  for (const Scalar& element : std::get<std::vector<Scalar>>(value))
    array.push_back(config::to_json(element));
  return array.dump_lossy();
}

}  // namespace fleet
