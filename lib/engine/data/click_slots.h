// data.slots: which slots of a line become which columns. Internal to data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/click_columns.h"

namespace fleet::data {

struct ClickSlot {
  enum class Type { kLabel, kFloat, kInt };
  std::string name;
  Type type = Type::kInt;
  int64_t length = 1;  // most values: dim of floats, max_len of ids
  double pad = -1;     // value of places without one
  int64_t at = 0;      // first number of `dense`, or the slot of `ids`
};

// Immutable: thread-safe.
class ClickSlots {
 public:
  // data.slots, data.ids and data.id_values. kUsage if they do not fit.
  explicit ClickSlots(const Settings& data);
  ClickSlots(const ClickSlots&) = delete;
  const std::vector<ClickSlot>& all() const { return slots_; }
  const ClickShape& shape() const { return shape_; }
  // -1 for a name that data.slots lacks.
  int find(std::string_view name) const;
  // Pads all columns.
  void clear(const ClickRow& row) const;
  // Writes value `index` of a slot. Returns why it cannot be; "" if it can.
  std::string set(const ClickSlot& slot, int64_t index, std::string_view value,
                  const ClickRow& row) const;

 private:
  void add(const std::string& text);
  void add(const ClickSlot& slot);
  std::string set_id(const ClickSlot& slot, int64_t index, std::string_view value,
                     const ClickRow& row) const;

  std::vector<ClickSlot> slots_;
  std::unordered_map<std::string_view, int> by_name_;
  ClickShape shape_;
  const IdSpace ids_;
  const bool hashes_;
};

// The keys slots and id_values. id_values: its default. The default slots fit PaddleRec's Criteo
// data.
Schema click_slot_keys(const std::string& id_values);

}  // namespace fleet::data
