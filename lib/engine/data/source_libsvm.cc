// libsvm's sparse rows, "label index:value index:value ...", and Angel's "dummy" rows without
// values, "label index index ...". All features are in one slot.
#include <algorithm>

#include "data/click_files.h"
#include "data/line_fields.h"

namespace fleet::data {
namespace {

class LibSvm : public ClickFormat {
 public:
  explicit LibSvm(const Settings& data)
      : ids_(data.integer("ids")),
        longest_(data.integer("max_len")),
        hashes_(data.text("id_values") == "hash"),
        weights_(data.text("values") == "weights") {}
  ClickShape shape() const override {
    return {.slots = 1, .longest = longest_, .weights = weights_};
  }

  std::string parse(std::string_view line, const ClickRow& row) const override {
    std::fill_n(row.ids, longest_, -1);
    if (weights_) std::fill_n(row.weights, longest_, 0.0f);
    BlankFields fields(line.substr(0, line.find('#')));  // a comment follows
    std::string_view field;
    if (!fields.next(&field)) return "it has no label";
    bool more = true;
    if (row.label) {
      if (!label_of(field, row.label)) {
        return "the label " + quoted_field(field) + " is none of 0, 1 and -1";
      }
      more = fields.next(&field);
    } else if (field.find(':') == field.npos) {
      more = fields.next(&field);
    }
    for (int64_t count = 0; more; more = fields.next(&field), ++count) {
      if (count == longest_) {
        return "it has more than data.max_len (" + std::to_string(longest_) + ") features";
      }
      std::string why = set(field, count, row);
      if (!why.empty()) return why;
    }
    return {};
  }

 private:
  static bool label_of(std::string_view text, float* label) {
    if (!real_number(text, label)) return false;
    if (*label == -1) *label = 0;
    return *label == 0 || *label == 1;
  }

  std::string set(std::string_view field, int64_t at, const ClickRow& row) const {
    const size_t colon = field.find(':');
    uint64_t index = 0;
    float value = 1;
    if (!whole_number(field.substr(0, colon), &index)) {
      return "the index of " + quoted_field(field) + " is not a whole number of 64 bits";
    }
    if (colon != field.npos && !real_number(field.substr(colon + 1), &value)) {
      return "the value of " + quoted_field(field) + " is not a number of 32 bits";
    }
    if (!hashes_ && !ids_.contains(index)) {
      return "the index " + std::to_string(index) + " is not below data.ids (" +
             std::to_string(ids_.size()) + ")";
    }
    if (!weights_ && value != 1) {
      return "the value of " + quoted_field(field) +
             " is not 1; data.values=\"weights\" makes a column of values";
    }
    row.ids[at] = hashes_ ? ids_.hashed(0, index) : static_cast<int64_t>(index);
    if (weights_) row.weights[at] = value;
    return {};
  }

  const IdSpace ids_;
  const int64_t longest_;
  const bool hashes_, weights_;
};

std::unique_ptr<const ClickFormat> make_libsvm(const Settings& data) {
  return std::make_unique<LibSvm>(data);
}

}  // namespace

FLEET_SOURCE(libsvm) {
  define_clicks<make_libsvm>(&def);
  def.shared = [] {
    return click_row_keys()
        .integer("max_len", 128, 1, 1e6, "Most features of a row; shorter rows are padded")
        .choice("id_values", "ids", {"ids", "hash"},
                "Indices: ids as they are, below data.ids, or hashed into data.ids")
        .choice(
            "values", "ones", {"ones", "weights"},
            "Values of features: each must be 1 (or missing), or they are a column \"weights\"");
  };
}

}  // namespace fleet::data
