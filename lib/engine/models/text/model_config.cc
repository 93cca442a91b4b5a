#include <cmath>

#include "base/error.h"
#include "models/text/language_family.h"

namespace fleet {

const Json* ModelConfig::find(std::string_view name) const {
  const Json* value = json_.find(name);
  return value && !value->is_null() ? value : nullptr;
}

bool ModelConfig::has(std::string_view name) const { return find(name) != nullptr; }

bool ModelConfig::is_null(std::string_view name) const {
  const Json* value = json_.find(name);
  return value && value->is_null();
}

void ModelConfig::refuse(std::string_view name, const std::string& what,
                         const std::string& next) const {
  throw Error(ErrorCode::kUsage, "'" + std::string(name) + "' " + what, where_, next);
}

int64_t ModelConfig::integer(std::string_view name, std::optional<int64_t> initial, int64_t least,
                             int64_t most) const {
  const Json* value = find(name);
  if (!value) {
    if (initial) return *initial;
    refuse(name, "is missing", "use the config.json that was saved with the weights");
  }
  const std::string wanted =
      "set it to an integer from " + std::to_string(least) + " to " + std::to_string(most);
  const bool is_integer =
      value->is_number_integer() ||
      (value->is_number_float() && std::trunc(value->get<double>()) == value->get<double>());
  const double number = is_integer ? value->get<double>() : 0;
  if (!is_integer || number < static_cast<double>(least) || number > static_cast<double>(most)) {
    refuse(name, "is " + value->dump_lossy(), wanted);
  }
  return value->get<int64_t>();
}

double ModelConfig::number(std::string_view name, double initial) const {
  const Json* value = find(name);
  if (!value) return initial;
  if (!value->is_number()) refuse(name, "is " + value->dump_lossy(), "set it to a number");
  return value->get<double>();
}

double ModelConfig::rate(std::string_view name, double initial) const {
  const double value = number(name, initial);
  if (value >= 0 && value < 1) return value;
  refuse(name, "is " + find(name)->dump_lossy(), "set it to a number of [0, 1)");
}

bool ModelConfig::boolean(std::string_view name, bool initial) const {
  const Json* value = find(name);
  if (!value) return initial;
  if (!value->is_boolean()) refuse(name, "is " + value->dump_lossy(), "set it to true or false");
  return value->get<bool>();
}

std::string ModelConfig::text(std::string_view name, const std::string& initial) const {
  const Json* value = find(name);
  if (!value) return initial;
  if (!value->is_string()) refuse(name, "is " + value->dump_lossy(), "set it to a text");
  return value->get<std::string>();
}

std::vector<std::string> ModelConfig::texts(std::string_view name) const {
  const Json* value = find(name);
  if (!value) return {};
  const bool texts =
      value->is_array() &&
      std::all_of(value->begin(), value->end(), [](const Json& one) { return one.is_string(); });
  if (!texts) refuse(name, "is " + value->dump_lossy(), "set it to a list of texts");
  return value->get<std::vector<std::string>>();
}

}  // namespace fleet
