#include "data/click_slots.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/line_fields.h"
#include "data/tar_files.h"

namespace fleet::data {
namespace {

constexpr int64_t kLongest = 1'000'000, kMostSlots = 100'000;

[[noreturn]] void refuse(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "data.slots", next);
}

ClickSlot::Type type_of(const std::string& name) {
  if (name == "label") return ClickSlot::Type::kLabel;
  if (name == "float") return ClickSlot::Type::kFloat;
  if (name == "int") return ClickSlot::Type::kInt;
  refuse("unknown type " + quoted_field(name), "types are int, float and label");
}

std::string text_member(const Json& object, std::string_view key, const std::string& initial) {
  const Json* value = object.find(key);
  if (!value) return initial;
  if (!value->is_string()) refuse("'" + std::string(key) + "' is not a text", "write a text");
  return value->get<std::string>();
}

std::optional<double> number_member(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  if (!value) return std::nullopt;
  if (!value->is_number()) refuse("'" + std::string(key) + "' is not a number", "write a number");
  return value->get<double>();
}

void check_keys(const Json& object) {
  static const std::array<std::string, 5> kKeys = {"name", "type", "dim", "max_len", "pad"};
  for (const std::string& key : object.keys()) {
    if (std::ranges::find(kKeys, key) == kKeys.end()) {
      refuse("unknown key " + quoted_field(key) + " of a slot", suggestion(key, kKeys));
    }
  }
}

// The slots of one object of data.slots, without their places; its name may stand for several.
ClickSlot slot_of(const std::string& text) {
  ClickSlot slot;
  if (!text.starts_with('{') || text.find('"') == text.npos) {  // a name alone
    slot.name = text;
    return slot;
  }
  const std::optional<Json> object = Json::try_parse(text);
  if (!object || !object->is_object()) {
    refuse(quoted_field(text) + " is not a slot", "write {\"name\": \"...\", \"type\": \"int\"}");
  }
  check_keys(*object);
  slot.name = text_member(*object, "name", "");
  slot.type = type_of(text_member(*object, "type", "int"));
  const bool ids = slot.type == ClickSlot::Type::kInt;
  const bool numbers = slot.type == ClickSlot::Type::kFloat;
  const std::string unfit = object->contains(ids ? "dim" : "max_len") ? (ids ? "dim" : "max_len")
                            : !ids && !numbers && object->contains("dim") ? "dim"
                            : !ids && !numbers && object->contains("pad") ? "pad"
                                                                          : "";
  if (!unfit.empty()) {
    refuse("the slot " + quoted_field(slot.name) + " cannot have '" + unfit + "'",
           "int slots have max_len, float slots have dim, a label has neither");
  }
  const double length = number_member(*object, ids ? "max_len" : "dim").value_or(1);
  if (!(length >= 1 && length <= kLongest) || length != static_cast<double>(int64_t(length))) {
    refuse("the slot " + quoted_field(slot.name) + " has a length that is not possible",
           "use a whole number from 1 to a million");
  }
  slot.length = static_cast<int64_t>(length);
  slot.pad = number_member(*object, "pad").value_or(ids ? -1 : 0);
  return slot;
}

}  // namespace

ClickSlots::ClickSlots(const Settings& data)
    : ids_(data.integer("ids")), hashes_(data.text("id_values") == "hash") {
  for (const std::string& text : data.texts("slots")) add(text);
  if (slots_.empty()) {
    refuse("no slots are named",
           "write [{\"name\": \"click\", \"type\": \"label\"}, {\"name\": \"1\", \"type\": "
           "\"int\"}, ...]");
  }
  int labels = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!by_name_.emplace(slots_[i].name, static_cast<int>(i)).second) {
      refuse("two slots are named " + quoted_field(slots_[i].name), "name each once");
    }
    labels += slots_[i].type == ClickSlot::Type::kLabel ? 1 : 0;
  }
  if (labels != 1) {
    refuse(std::to_string(labels) + " slots have the type label", "give one the type label");
  }
  if (shape_.slots == 0) refuse("no slot has ids", "give one or more the type int");
}

void ClickSlots::add(const std::string& text) {
  ClickSlot slot = slot_of(text);
  if (slot.name.empty() || slot.name.find_first_of(" \t:") != slot.name.npos) {
    refuse("a slot is named " + quoted_field(slot.name), "use a name without blanks and colons");
  }
  if (slot.type == ClickSlot::Type::kInt) {
    const bool fits = slot.pad == -1 || (slot.pad >= 0 && slot.pad <= 9e15 &&
                                         slot.pad == static_cast<double>(int64_t(slot.pad)) &&
                                         ids_.contains(static_cast<uint64_t>(slot.pad)));
    if (!fits)
      refuse("the pad of " + quoted_field(slot.name) + " is not an id", "use -1, or an id");
  }
  if (slot.name.find_first_of("*?[{") == slot.name.npos) return add(slot);
  if (slot.name.find_first_of("*?[") != slot.name.npos) {
    refuse("the name " + quoted_field(slot.name) + " is a pattern", "use {1..26} or {a,b}");
  }
  for (std::string& name : shard_names(slot.name)) {
    slot.name = std::move(name);
    add(slot);
  }
}

void ClickSlots::add(const ClickSlot& slot) {
  ClickSlot& added = slots_.emplace_back(slot);
  if (std::ssize(slots_) > kMostSlots) refuse("more than 100,000 slots", "name fewer");
  if (slot.type == ClickSlot::Type::kFloat) {
    added.at = shape_.dense;
    shape_.dense += slot.length;
  } else if (slot.type == ClickSlot::Type::kInt) {
    added.at = shape_.slots++;
    shape_.longest = std::max(shape_.longest, slot.length);
  }
}

int ClickSlots::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : found->second;
}

void ClickSlots::clear(const ClickRow& row) const {
  for (const ClickSlot& slot : slots_) {
    if (slot.type == ClickSlot::Type::kFloat) {
      std::fill_n(row.dense + slot.at, slot.length, static_cast<float>(slot.pad));
    } else if (slot.type == ClickSlot::Type::kInt) {
      int64_t* ids = row.ids + slot.at * shape_.longest;
      std::fill_n(ids, slot.length, static_cast<int64_t>(slot.pad));
      std::fill(ids + slot.length, ids + shape_.longest, -1);
    }
  }
}

std::string ClickSlots::set_id(const ClickSlot& slot, int64_t index, std::string_view value,
                               const ClickRow& row) const {
  uint64_t number = 0;
  if (!whole_number(value, &number)) {
    return quoted_field(value) + " of the slot " + quoted_field(slot.name) +
           " is not a whole number of 64 bits";
  }
  if (!hashes_ && !ids_.contains(number)) {
    return "the id " + std::to_string(number) + " of the slot " + quoted_field(slot.name) +
           " is not below data.ids (" + std::to_string(ids_.size()) + ")";
  }
  row.ids[slot.at * shape_.longest + index] =
      hashes_ ? ids_.hashed(static_cast<uint64_t>(slot.at), number) : static_cast<int64_t>(number);
  return {};
}

std::string ClickSlots::set(const ClickSlot& slot, int64_t index, std::string_view value,
                            const ClickRow& row) const {
  if (index >= slot.length) {
    return "the slot " + quoted_field(slot.name) + " has more values than its " +
           (slot.type == ClickSlot::Type::kInt ? "max_len" : "dim") + ", " +
           std::to_string(slot.length);
  }
  switch (slot.type) {
    case ClickSlot::Type::kInt:
      return set_id(slot, index, value, row);
    case ClickSlot::Type::kFloat:
      if (real_number(value, row.dense + slot.at + index)) return {};
      return quoted_field(value) + " of the slot " + quoted_field(slot.name) +
             " is not a number of 32 bits";
    case ClickSlot::Type::kLabel:
      if (!row.label || click_label(value, row.label)) return {};
      return "the label " + quoted_field(value) + " is neither 0 nor 1";
  }
  return {};
}

Schema click_slot_keys(const std::string& id_values) {
  return Schema()
      .texts("slots",
             {R"({"name":"click","type":"label"})",
              R"({"name":"dense_feature","type":"float","dim":13})", "{1..26}"},
             "Slots of a row: {\"name\", \"type\": \"int\" (ids), \"float\" or \"label\", "
             "\"max_len\" of an int slot or \"dim\" of a float slot (1), \"pad\" (-1, no id, or "
             "0)}; a name such as {1..26} stands for several, a text for an int slot")
      .or_objects()
      .choice("id_values", id_values, {"hash", "ids"},
              "Values of int slots: hashed with the number of their slot into data.ids, or ids as "
              "they are, below data.ids");
}

}  // namespace fleet::data
