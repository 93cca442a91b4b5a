// Criteo's display advertising data (Kaggle's challenge, and the terabyte set): a row has a label,
// 13 integers and 26 hexadecimal categories between tabs; a field may be empty.
#include <array>
#include <cstring>

#include "base/error.h"
#include "data/click_files.h"
#include "data/line_fields.h"

namespace fleet::data {
namespace {

constexpr int64_t kIntegers = 13, kCategories = 26;
// A category that is missing has an id of its own; no hexadecimal number of Criteo's 8 digits is
// this value.
constexpr uint64_t kMissing = UINT64_MAX;

class Criteo : public ClickFormat {
 public:
  explicit Criteo(const Settings& data) : ids_(data.integer("ids")) {
    const std::vector<double> least = numbers(data, "dense_min");
    const std::vector<double> range = numbers(data, "dense_range");
    for (int64_t i = 0; i < kIntegers; ++i) {
      if (!(range[i] > 0)) {
        throw Error(ErrorCode::kUsage, "a number is not above 0", "data.dense_range",
                    "give what each integer is divided by");
      }
      least_[i] = least[i];
      range_[i] = range[i];
    }
  }

  ClickShape shape() const override { return {.dense = kIntegers, .slots = kCategories}; }

  std::string parse(std::string_view line, const ClickRow& row) const override {
    std::array<std::string_view, 1 + kIntegers + kCategories> fields;
    const size_t found = cut(line, fields);
    // A row to predict may have no label, as Kaggle's test set.
    const bool labelled = row.label || found == fields.size();
    if (found != fields.size() - (labelled ? 0 : 1)) return wrong_count(found);
    size_t next = 0;
    if (labelled) {
      if (row.label && !click_label(fields[0], row.label)) {
        return "the label " + quoted_field(fields[0]) + " is neither 0 nor 1";
      }
      next = 1;
    }
    for (int64_t i = 0; i < kIntegers; ++i) {
      if (!integer(fields[next++], i, row.dense)) {
        return "the integer " + std::to_string(i + 1) + " is " + quoted_field(fields[next - 1]);
      }
    }
    for (int64_t i = 0; i < kCategories; ++i) {
      uint64_t value = kMissing;
      const std::string_view field = fields[next++];
      if (!field.empty() && !whole_number(field, &value, 16)) {
        return "the category " + std::to_string(i + 1) + " is " + quoted_field(field) +
               ", not a hexadecimal number";
      }
      row.ids[i] = ids_.hashed(static_cast<uint64_t>(i), value);
    }
    return {};
  }

 private:
  static std::vector<double> numbers(const Settings& data, const std::string& key) {
    std::vector<double> values = data.numbers(key);
    if (std::ssize(values) == kIntegers) return values;
    throw Error(ErrorCode::kUsage, std::to_string(values.size()) + " numbers", "data." + key,
                "give 13 numbers, one for each integer of a row");
  }

  // Returns the number of fields, at most one more than there is space for.
  template <size_t count>
  static size_t cut(std::string_view line, std::array<std::string_view, count>& fields) {
    size_t found = 0;
    const char* at = line.data();
    const char* const end = at + line.size();
    for (;;) {
      const void* tab = std::memchr(at, '\t', static_cast<size_t>(end - at));
      const char* const stop = tab ? static_cast<const char*>(tab) : end;
      if (found == count) return count + 1;
      fields[found++] = {at, static_cast<size_t>(stop - at)};
      if (!tab) return found;
      at = stop + 1;
    }
  }

  static std::string wrong_count(size_t found) {
    const size_t most = 1 + kIntegers + kCategories;
    return (found > most ? "more than " + std::to_string(most) : std::to_string(found)) +
           " fields between tabs instead of " + std::to_string(most);
  }

  bool integer(std::string_view field, int64_t i, float* dense) const {
    dense[i] = 0;
    if (field.empty()) return true;
    int64_t value = 0;
    if (!whole_number(field, &value)) return false;
    dense[i] = static_cast<float>((static_cast<double>(value) - least_[i]) / range_[i]);
    return true;
  }

  const IdSpace ids_;
  std::array<double, kIntegers> least_{}, range_{};
};

std::unique_ptr<const ClickFormat> make_criteo(const Settings& data) {
  return std::make_unique<Criteo>(data);
}

}  // namespace

FLEET_SOURCE(criteo) {
  define_clicks<make_criteo>(&def);
  def.shared = [] {
    return click_row_keys()
        .numbers(
            "dense_min", {0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
            "For each of the 13 integers: the number to subtract before the division. A missing "
            "integer becomes 0")
        .numbers("dense_range", {20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50},
                 "For each of the 13 integers: what it is divided by");
  };
}

}  // namespace fleet::data
