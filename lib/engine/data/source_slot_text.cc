// PaddleRec's slot text: a row has "name:value" fields between blanks, such as
// "click:0 dense_feature:0.05 ... 1:737395 ... 26:306163". A slot may have several fields, or none.
#include <algorithm>

#include "data/click_files.h"
#include "data/click_slots.h"
#include "data/line_fields.h"

namespace fleet::data {
namespace {

class SlotText : public ClickFormat {
 public:
  explicit SlotText(const Settings& data) : slots_(data) {}
  ClickShape shape() const override { return slots_.shape(); }

  std::string parse(std::string_view line, const ClickRow& row) const override {
    thread_local std::vector<int32_t> counts;
    counts.assign(slots_.all().size(), 0);
    slots_.clear(row);
    BlankFields fields(line);
    size_t likely = 0;  // fields mostly come in the order of data.slots
    bool labelled = false;
    for (std::string_view field; fields.next(&field);) {
      const size_t colon = field.find(':');
      if (colon == field.npos || colon == 0) {
        return quoted_field(field) + " is not \"name:value\"";
      }
      const int number = slot_of(field.substr(0, colon), &likely);
      if (number < 0) continue;  // the job does not use this slot
      const ClickSlot& slot = slots_.all()[static_cast<size_t>(number)];
      labelled |= slot.type == ClickSlot::Type::kLabel;
      std::string why =
          slots_.set(slot, counts[static_cast<size_t>(number)]++, field.substr(colon + 1), row);
      if (!why.empty()) return why;
    }
    return labelled || !row.label ? "" : "it has no label";
  }

 private:
  int slot_of(std::string_view name, size_t* likely) const {
    const std::vector<ClickSlot>& all = slots_.all();
    for (size_t i = *likely; i < std::min(*likely + 2, all.size()); ++i) {
      if (all[i].name != name) continue;
      *likely = i;
      return static_cast<int>(i);
    }
    const int found = slots_.find(name);
    if (found >= 0) *likely = static_cast<size_t>(found);
    return found;
  }

  const ClickSlots slots_;
};

std::unique_ptr<const ClickFormat> make_slot_text(const Settings& data) {
  return std::make_unique<SlotText>(data);
}

}  // namespace

FLEET_SOURCE(slot_text) {
  define_clicks<make_slot_text>(&def);
  def.shared = [] { return click_row_keys().section("", click_slot_keys("ids")); };
}

}  // namespace fleet::data
