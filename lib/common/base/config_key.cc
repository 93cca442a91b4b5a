#include "base/config_key.h"

#include <cmath>

#include "base/config_value.h"
#include "base/error.h"
#include "base/python_literals.h"
#include "base/text.h"

namespace fleet::config {
namespace {

using List = std::vector<Scalar>;

bool is_list(ConfigType type) { return type >= ConfigType::kIntegers; }

// The types of lists are in the order of those of their elements.
ConfigType element_of(ConfigType type) {
  constexpr int kApart =
      static_cast<int>(ConfigType::kIntegers) - static_cast<int>(ConfigType::kInteger);
  return is_list(type) ? static_cast<ConfigType>(static_cast<int>(type) - kApart) : type;
}

// Rewrites a choice in its declared spelling; its case does not matter.
void spell_choice(const ConfigKey& key, Scalar* scalar) {
  std::string* text = std::get_if<std::string>(scalar);
  if (!text) return;
  for (const std::string& choice : key.choices) {
    if (lower_case(*text) == lower_case(choice)) {
      *text = choice;
      return;
    }
  }
}

// Converts the scalar to the wanted type, or returns nullopt. An untyped value came as text and is
// parsed as that type.
std::optional<Scalar> coerce(const Scalar& given, ConfigType wanted, bool untyped) {
  if (untyped && wanted != ConfigType::kText && std::holds_alternative<std::string>(given)) {
    const auto json = Json::try_parse(json_from_python(std::get<std::string>(given)));
    const auto scalar = json ? to_scalar(*json) : std::nullopt;
    return scalar ? coerce(*scalar, wanted, false) : std::nullopt;
  }
  switch (wanted) {
    case ConfigType::kBool:
      if (std::holds_alternative<bool>(given)) return given;
      if (given == Scalar(std::string("True"))) return Scalar(true);
      if (given == Scalar(std::string("False"))) return Scalar(false);
      break;
    case ConfigType::kInteger:
      if (std::holds_alternative<int64_t>(given)) return given;
      if (const double* number = std::get_if<double>(&given)) {
        if (*number == std::floor(*number) && std::abs(*number) < 9e15) {
          return Scalar(static_cast<int64_t>(*number));
        }
      }
      break;
    case ConfigType::kNumber:
      if (std::holds_alternative<double>(given)) return given;
      if (const int64_t* integer = std::get_if<int64_t>(&given)) {
        return Scalar(static_cast<double>(*integer));
      }
      break;
    default:
      if (std::holds_alternative<std::string>(given)) return given;
      break;
  }
  return std::nullopt;
}

bool in_range(const Scalar& scalar, const ConfigKey& key) {
  if (const std::string* text = std::get_if<std::string>(&scalar)) {
    if (key.choices.empty()) return true;
    for (const std::string& choice : key.choices) {
      if (choice == *text) return true;
    }
    return false;
  }
  double number = 0;
  if (const int64_t* integer = std::get_if<int64_t>(&scalar))
    number = static_cast<double>(*integer);
  if (const double* real = std::get_if<double>(&scalar)) number = *real;
  return std::holds_alternative<bool>(scalar) || (number >= key.min && number <= key.max);
}

[[noreturn]] void bad_value(const ConfigKey& key, const ConfigValue& value,
                            const std::string& origin) {
  std::string wanted = name_of(key.type);
  const std::string range = range_of(key);
  if (!range.empty()) wanted += ", " + range;
  throw Error(ErrorCode::kUsage, "'" + key.path + "' cannot be " + value.text(), origin,
              "it must be " + wanted);
}

// A shell removes the quotes of ["a", "b"], so [a, b] is no JSON. Its parts would be "[a" and "b]".
void refuse_brackets(const ConfigKey& key, const std::string& text, const std::string& origin) {
  const std::string_view list = trim(text);
  const size_t inner = list.find_first_of("[]", 1);
  if (!list.starts_with('[') || inner + 1 != list.size() || list.find(',') == list.npos) {
    return;
  }
  throw Error(ErrorCode::kUsage, "'" + key.path + "' cannot be " + Json(text).dump(), origin,
              "leave out the brackets, or write JSON, with quotes that the shell keeps");
}

}  // namespace

const char* name_of(ConfigType type) {
  constexpr const char* kNames[] = {"true or false",    "an integer",         "a number",
                                    "a string",         "a list of integers", "a list of numbers",
                                    "a list of strings"};
  return kNames[static_cast<size_t>(type)];
}

std::string range_of(const ConfigKey& key) {
  const auto bound = [](double value) {
    const bool whole = value == std::floor(value) && std::abs(value) < 9e15;
    return whole ? std::to_string(static_cast<int64_t>(value)) : Json(value).dump();
  };
  if (!key.choices.empty()) {
    std::vector<std::string> shown = key.choices;
    for (std::string& choice : shown) {
      if (choice.empty()) choice = "\"\"";
    }
    return "one of " + join(shown, ", ");
  }
  const bool low = std::isfinite(key.min), high = std::isfinite(key.max);
  if (low && high) return "from " + bound(key.min) + " to " + bound(key.max);
  if (low) return "at least " + bound(key.min);
  if (high) return "at most " + bound(key.max);
  return {};
}

ConfigValue check(const ConfigKey& key, const ConfigValue& given, bool untyped,
                  const std::string& origin) {
  List list;
  if (const Scalar* scalar = std::get_if<Scalar>(&given.value)) {
    const std::string* text = std::get_if<std::string>(scalar);
    if (is_list(key.type) && untyped && text) {  // "1,2,3"
      if (key.type == ConfigType::kTexts) refuse_brackets(key, *text, origin);
      // "key=" is an empty list.
      const std::vector<std::string> parts =
          text->empty() ? std::vector<std::string>() : split(*text, ',');
      for (const std::string& part : parts) list.push_back(part);
    } else {
      list.push_back(*scalar);
      const bool one = key.type == ConfigType::kTexts && text;  // a list of one
      if (is_list(key.type) && !untyped && !one) bad_value(key, given, origin);
    }
  } else {
    if (!is_list(key.type)) bad_value(key, given, origin);
    list = std::get<List>(given.value);
  }
  for (Scalar& element : list) {
    auto coerced = coerce(element, element_of(key.type), untyped);
    if (coerced && untyped) spell_choice(key, &*coerced);
    if (!coerced || !in_range(*coerced, key)) bad_value(key, given, origin);
    element = *coerced;
  }
  return is_list(key.type) ? ConfigValue{list} : ConfigValue{list.front()};
}

}  // namespace fleet::config
