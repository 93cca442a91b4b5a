// JSON values. Only json_text.cc needs the JSON library, whose header is slow to compile.
//
// Different values may be used by several threads, and one value may be read by several. Asking a
// value for something that it is not throws JsonError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace fleet {

class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The next item of a text that is being parsed.
enum class JsonEvent { kObject, kArray, kKey, kValue };
// depth: number of objects and arrays around it. key: of kKey, else empty. May throw.
using JsonCheck = std::function<void(JsonEvent event, int depth, const std::string& key)>;

struct JsonMember;

// null, a bool, an integer, a double, a string, an array, or an object, which keeps the order of
// its members. Integers that are parsed without a sign are unsigned, so that all of uint64_t fits.
class Json {
 public:
  Json() noexcept;  // null
  Json(std::nullptr_t) noexcept;
  Json(bool value) noexcept;
  Json(int value) noexcept;
  Json(long value) noexcept;
  Json(long long value) noexcept;
  Json(unsigned value) noexcept;
  Json(unsigned long value) noexcept;
  Json(unsigned long long value) noexcept;
  Json(double value) noexcept;
  Json(const char* value);
  Json(std::string value);
  Json(std::string_view value);
  Json(const void*) = delete;  // not a bool
  template <typename T>
  requires(!std::is_same_v<T, Json>) Json(const std::vector<T>& list)
      : value_(std::vector<Json>(list.begin(), list.end())) {}
  template <typename T>
  Json(const std::map<std::string, T>& members) : value_(Object()) {
    auto& object = std::get<Object>(value_);
    for (const auto& [key, value] : members) {
      object.keys.push_back(key);
      object.values.emplace_back(value);
    }
  }
  // {{"key", value}, ...} is an object, and any other list is an array.
  Json(std::initializer_list<Json> list);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array(std::vector<Json> elements = {});
  static Json object();
  // Of equal keys, the last one's value counts, at the place of the first.
  static Json object(std::vector<std::string> keys, std::vector<Json> values);

  // JsonError names the line, the column and the error. comments: allows // and /* */.
  static Json parse(std::string_view text, const JsonCheck& check = {}, bool comments = false);
  // nullopt if it is not valid.
  static std::optional<Json> try_parse(std::string_view text);

  // indent: -1 for one line. Throws JsonError if a string is not UTF-8. Doubles that are not finite
  // become null.
  std::string dump(int indent = -1) const;
  // Bytes that are not UTF-8 become U+FFFD.
  std::string dump_lossy(int indent = -1) const;

  bool is_null() const;
  bool is_boolean() const;
  bool is_number() const;
  bool is_number_integer() const;  // an unsigned one, too
  bool is_number_unsigned() const;
  bool is_number_float() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  // T: one of those below the class, or a vector or a map by name of them. A number becomes T
  // without a check of its range.
  template <typename T>
  T get() const {
    T all;
    if constexpr (requires { typename T::mapped_type; }) {
      if (!is_object()) refuse_type("object");
      const Json* value = begin();
      for (const std::string& key : keys()) {
        all.emplace(key, (value++)->template get<typename T::mapped_type>());
      }
    } else {
      all.reserve(size());
      for (const Json& element : elements()) {
        all.push_back(element.template get<typename T::value_type>());
      }
    }
    return all;
  }

  // Elements, or members; 0 for null, 1 for others.
  size_t size() const;
  bool empty() const { return size() == 0; }
  // The elements of an array, or the values of an object. A scalar has itself as the only element.
  const Json* begin() const;
  const Json* end() const;
  // JsonError if it is not an array.
  const std::vector<Json>& elements() const;
  // Of an object, else none.
  const std::vector<std::string>& keys() const;
  // Copies the keys. Those of an array are "0", "1", ...
  std::vector<JsonMember> items() const&;
  std::vector<JsonMember> items() && = delete;  // the values would be gone

  // nullptr: not an object, or it has no such member. Takes time in proportion to their number.
  const Json* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  const Json& at(std::string_view key) const;
  const Json& at(size_t index) const;
  // The member of an object, or `initial`.
  template <typename T>
  T value(std::string_view key, T initial) const {
    const Json* found = find_in_object(key);
    return found ? found->get<T>() : initial;
  }

  // Adds the member if it is missing. null becomes an object.
  Json& operator[](std::string_view key);
  // null becomes an array.
  void push_back(Json element);
  void erase(std::string_view key);
  // Sorts the members of all objects within it by key.
  void sort_keys();

  // Numbers of different types are equal if their values are. The order of members counts.
  friend bool operator==(const Json& a, const Json& b);

 private:
  struct Object {
    std::vector<std::string> keys;
    std::vector<Json> values;
  };

  const Json* find_in_object(std::string_view key) const;
  const char* type_name() const;
  [[noreturn]] void refuse_type(const char* wanted) const;
  [[noreturn]] void refuse_use(int number, const std::string& use) const;
  const std::vector<Json>* children() const;
  std::vector<Json>* children();

  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, std::vector<Json>,
               Object>
      value_;
};

struct JsonMember {
  std::string key;
  const Json& value;
};

template <>
Json Json::get<Json>() const;
template <>
bool Json::get<bool>() const;
template <>
int Json::get<int>() const;
template <>
int64_t Json::get<int64_t>() const;
template <>
uint64_t Json::get<uint64_t>() const;
template <>
double Json::get<double>() const;
template <>
std::string Json::get<std::string>() const;

}  // namespace fleet
