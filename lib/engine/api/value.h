// Values by name, as in a job file: {"num_classes", 102}, {"mean", {0.485, 0.456, 0.406}}.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace fleet {

// A bool, number, string or list, kept as text; the name it is set under decides the type.
class Value {
 public:
  Value(bool value) : text_(value ? "true" : "false") {}  // NOLINT(runtime/explicit)
  Value(int value) : text_(std::to_string(value)) {}      // NOLINT(runtime/explicit)
  Value(int64_t value) : text_(std::to_string(value)) {}  // NOLINT(runtime/explicit)
  Value(double value);                                    // NOLINT(runtime/explicit)
  Value(const char* value) : text_(value) {}              // NOLINT(runtime/explicit)
  Value(std::string value) : text_(std::move(value)) {}   // NOLINT(runtime/explicit)
  Value(std::initializer_list<double> values);            // NOLINT(runtime/explicit)
  Value(std::initializer_list<const char*> values);       // NOLINT(runtime/explicit)
  Value(const std::vector<std::string>& values);          // NOLINT(runtime/explicit)
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

using Values = std::vector<std::pair<std::string, Value>>;

}  // namespace fleet
