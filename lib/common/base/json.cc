#include "base/json.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fleet {
namespace {

// The texts match nlohmann's exceptions, which messages show.
[[noreturn]] void refuse(const char* kind, int number, const std::string& what) {
  throw JsonError("[json.exception." + std::string(kind) + "." + std::to_string(number) + "] " +
                  what);
}

bool has_equal(const std::vector<std::string>& keys) {
  constexpr size_t kFew = 8;  // comparing all is faster than sorting
  if (keys.size() <= kFew) {
    for (size_t i = 1; i < keys.size(); ++i) {
      const auto end = keys.begin() + static_cast<ptrdiff_t>(i);
      if (std::find(keys.begin(), end, keys[i]) != end) return true;
    }
    return false;
  }
  std::vector<std::string_view> sorted(keys.begin(), keys.end());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

// The places of the keys in sorted order; equal ones keep their order.
std::vector<size_t> sorted_places(const std::vector<std::string>& keys) {
  std::vector<size_t> places(keys.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  return places;
}

void merge_equal(std::vector<std::string>* keys, std::vector<Json>* values) {
  const std::vector<size_t> places = sorted_places(*keys);
  std::vector<bool> left_out(keys->size());
  for (size_t i = 0, end = 0; i < places.size(); i = end) {
    const size_t first = places[i];
    for (end = i + 1; end < places.size() && (*keys)[places[end]] == (*keys)[first]; ++end) {
      left_out[places[end]] = true;
    }
    if (end > i + 1) (*values)[first] = std::move((*values)[places[end - 1]]);
  }
  size_t kept = 0;
  for (size_t i = 0; i < left_out.size(); ++i) {
    if (left_out[i]) continue;
    if (kept != i) {
      (*keys)[kept] = std::move((*keys)[i]);
      (*values)[kept] = std::move((*values)[i]);
    }
    ++kept;
  }
  keys->resize(kept);
  values->resize(kept);
}

bool is_member(const Json& json) {
  return json.is_array() && json.size() == 2 && json.begin()->is_string();
}

}  // namespace

Json::Json() noexcept = default;
Json::Json(std::nullptr_t) noexcept {}
Json::Json(bool value) noexcept : value_(value) {}
Json::Json(int value) noexcept : value_(int64_t{value}) {}
Json::Json(long value) noexcept : value_(int64_t{value}) {}
Json::Json(long long value) noexcept : value_(int64_t{value}) {}
Json::Json(unsigned value) noexcept : value_(uint64_t{value}) {}
Json::Json(unsigned long value) noexcept : value_(uint64_t{value}) {}
Json::Json(unsigned long long value) noexcept : value_(uint64_t{value}) {}
Json::Json(double value) noexcept : value_(value) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}

Json::Json(std::initializer_list<Json> list) {
  if (!std::all_of(list.begin(), list.end(), is_member)) {
    value_.emplace<std::vector<Json>>(list.begin(), list.end());
    return;
  }
  std::vector<std::string> keys;
  std::vector<Json> values;
  for (const Json& member : list) {
    keys.push_back(std::get<std::string>(member.begin()->value_));
    values.push_back(member.begin()[1]);
  }
  *this = object(std::move(keys), std::move(values));
}

Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;

// Takes deep values apart itself: as many nested calls as a hostile text has brackets would
// overflow the stack.
Json::~Json() {
  std::vector<Json>* own = children();
  if (!own) return;
  const auto nests = [](const Json& json) { return !json.empty() && json.children(); };
  if (std::none_of(own->begin(), own->end(), nests)) return;
  std::vector<Json> left = std::move(*own);
  while (!left.empty()) {
    Json last = std::move(left.back());
    left.pop_back();
    std::vector<Json>* inner = last.children();
    if (!inner) continue;
    for (Json& child : *inner) {
      if (nests(child)) left.push_back(std::move(child));
    }
    inner->clear();
  }
}

Json Json::array(std::vector<Json> elements) {
  Json json;
  json.value_ = std::move(elements);
  return json;
}

Json Json::object() {
  Json json;
  json.value_.emplace<Object>();
  return json;
}

Json Json::object(std::vector<std::string> keys, std::vector<Json> values) {
  if (has_equal(keys)) merge_equal(&keys, &values);
  Json json;
  json.value_ = Object{std::move(keys), std::move(values)};
  return json;
}

bool Json::is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_boolean() const { return std::holds_alternative<bool>(value_); }
bool Json::is_number() const { return is_number_integer() || is_number_float(); }
bool Json::is_number_integer() const {
  return std::holds_alternative<int64_t>(value_) || is_number_unsigned();
}
bool Json::is_number_unsigned() const { return std::holds_alternative<uint64_t>(value_); }
bool Json::is_number_float() const { return std::holds_alternative<double>(value_); }
bool Json::is_string() const { return std::holds_alternative<std::string>(value_); }
bool Json::is_array() const { return std::holds_alternative<std::vector<Json>>(value_); }
bool Json::is_object() const { return std::holds_alternative<Object>(value_); }

const char* Json::type_name() const {
  if (is_null()) return "null";
  if (is_boolean()) return "boolean";
  if (is_string()) return "string";
  if (is_array()) return "array";
  return is_object() ? "object" : "number";
}

void Json::refuse_type(const char* wanted) const {
  refuse("type_error", 302, std::string("type must be ") + wanted + ", but is " + type_name());
}

void Json::refuse_use(int number, const std::string& use) const {
  refuse("type_error", number, "cannot use " + use + " with " + type_name());
}

const std::vector<Json>* Json::children() const {
  if (const auto* list = std::get_if<std::vector<Json>>(&value_)) return list;
  const auto* object = std::get_if<Object>(&value_);
  return object ? &object->values : nullptr;
}

std::vector<Json>* Json::children() {
  return const_cast<std::vector<Json>*>(std::as_const(*this).children());
}

size_t Json::size() const { return static_cast<size_t>(end() - begin()); }

const Json* Json::begin() const {
  const std::vector<Json>* all = children();
  return all ? all->data() : this;
}

const Json* Json::end() const {
  const std::vector<Json>* all = children();
  if (all) return all->data() + all->size();
  return is_null() ? this : this + 1;
}

const std::vector<Json>& Json::elements() const {
  if (!is_array()) refuse_type("array");
  return std::get<std::vector<Json>>(value_);
}

const std::vector<std::string>& Json::keys() const {
  static const std::vector<std::string> none;
  const auto* object = std::get_if<Object>(&value_);
  return object ? object->keys : none;
}

std::vector<JsonMember> Json::items() const& {
  std::vector<JsonMember> all;
  all.reserve(size());
  for (const Json& child : *this) {
    const size_t at = all.size();
    all.push_back({is_object()  ? keys()[at]
                   : is_array() ? std::to_string(at)
                                : std::string(),
                   child});
  }
  return all;
}

const Json* Json::find(std::string_view key) const {
  const auto* object = std::get_if<Object>(&value_);
  if (!object) return nullptr;
  const auto found = std::find(object->keys.begin(), object->keys.end(), key);
  return found == object->keys.end() ? nullptr : &object->values[found - object->keys.begin()];
}

const Json* Json::find_in_object(std::string_view key) const {
  if (!is_object()) refuse_use(306, "value()");
  return find(key);
}

const Json& Json::at(std::string_view key) const {
  if (!is_object()) refuse_use(304, "at()");
  if (const Json* found = find(key)) return *found;
  refuse("out_of_range", 403, "key '" + std::string(key) + "' not found");
}

const Json& Json::at(size_t index) const {
  if (!is_array()) refuse_use(304, "at()");
  if (index < size()) return begin()[index];
  refuse("out_of_range", 401, "array index " + std::to_string(index) + " is out of range");
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_.emplace<Object>();
  auto* object = std::get_if<Object>(&value_);
  if (!object) refuse_use(305, "operator[] with a string argument");
  if (const Json* found = find(key)) return const_cast<Json&>(*found);
  object->keys.emplace_back(key);
  return object->values.emplace_back();
}

void Json::push_back(Json element) {
  if (is_null()) value_.emplace<std::vector<Json>>();
  auto* list = std::get_if<std::vector<Json>>(&value_);
  if (!list) refuse_use(308, "push_back()");
  list->push_back(std::move(element));
}

void Json::erase(std::string_view key) {
  auto* object = std::get_if<Object>(&value_);
  if (!object) refuse_use(307, "erase()");
  const auto found = std::find(object->keys.begin(), object->keys.end(), key);
  if (found == object->keys.end()) return;
  object->values.erase(object->values.begin() + (found - object->keys.begin()));
  object->keys.erase(found);
}

void Json::sort_keys() {
  std::vector<Json*> left = {this};
  while (!left.empty()) {
    Json* const one = left.back();
    left.pop_back();
    if (auto* object = std::get_if<Object>(&one->value_)) {
      Object sorted;
      for (const size_t place : sorted_places(object->keys)) {
        sorted.keys.push_back(std::move(object->keys[place]));
        sorted.values.push_back(std::move(object->values[place]));
      }
      *object = std::move(sorted);
    }
    std::vector<Json>* inner = one->children();
    if (!inner) continue;
    for (Json& child : *inner) left.push_back(&child);
  }
}

bool operator==(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_number_float() || b.is_number_float()) return a.get<double>() == b.get<double>();
    return a.get<int64_t>() == b.get<int64_t>();
  }
  if (a.value_.index() != b.value_.index()) return false;
  if (a.children()) return a.keys() == b.keys() && *a.children() == *b.children();
  if (a.is_string()) return std::get<std::string>(a.value_) == std::get<std::string>(b.value_);
  return a.is_null() || std::get<bool>(a.value_) == std::get<bool>(b.value_);
}

}  // namespace fleet
