#include "api/value.h"

#include <charconv>

#include "base/text.h"

namespace fleet {
namespace {

std::string text_of(double value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

Value::Value(double value) : text_(text_of(value)) {}

Value::Value(std::initializer_list<double> values) {
  std::vector<std::string> texts;
  for (double value : values) texts.push_back(text_of(value));
  text_ = "[" + join(texts, ", ") + "]";
}

Value::Value(std::initializer_list<const char*> values)
    : Value(std::vector<std::string>(values.begin(), values.end())) {}

Value::Value(const std::vector<std::string>& values) : text_(join(values, ",")) {}

}  // namespace fleet
