// Paddle's MultiSlotDataFeed: a row has, for each slot in order, the number of its values and the
// values, all between blanks: "1 0 3 17 4 99 1 5".
#include "data/click_files.h"
#include "data/click_slots.h"
#include "data/line_fields.h"

namespace fleet::data {
namespace {

class MultiSlot : public ClickFormat {
 public:
  explicit MultiSlot(const Settings& data) : slots_(data) {}
  ClickShape shape() const override { return slots_.shape(); }

  std::string parse(std::string_view line, const ClickRow& row) const override {
    slots_.clear(row);
    BlankFields fields(line);
    for (const ClickSlot& slot : slots_.all()) {
      std::string_view field;
      int64_t count = 0;
      if (!fields.next(&field)) return missing(slot, "has no count of values");
      if (!whole_number(field, &count) || count < 0) {
        return missing(slot, "has " + quoted_field(field) + " as its count of values");
      }
      if (count == 0) return missing(slot, "has 0 values; write one that stands for none");
      for (int64_t i = 0; i < count; ++i) {
        if (!fields.next(&field)) {
          return missing(
              slot, "has " + std::to_string(i) + " values instead of " + std::to_string(count));
        }
        std::string why = slots_.set(slot, i, field, row);
        if (!why.empty()) return why;
      }
    }
    std::string_view more;
    return fields.next(&more) ? quoted_field(more) + " follows the last slot" : "";
  }

 private:
  static std::string missing(const ClickSlot& slot, const std::string& what) {
    return "the slot " + quoted_field(slot.name) + " " + what;
  }

  const ClickSlots slots_;
};

std::unique_ptr<const ClickFormat> make_multislot(const Settings& data) {
  return std::make_unique<MultiSlot>(data);
}

}  // namespace

FLEET_SOURCE(multislot) {
  define_clicks<make_multislot>(&def);
  def.shared = [] { return click_row_keys().section("", click_slot_keys("hash")); };
}

}  // namespace fleet::data
