// An object of JSON that another program wrote: its values are read as far as they have the
// expected type.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleet {

// Not modified after its creation; copies share their content.
class JsonObject {
 public:
  // nullopt if the text is not an object. NaN and Infinity, which JSON lacks but Python writes, are
  // null.
  static std::optional<JsonObject> parse(std::string_view text);

  bool has(const std::string& key) const;  // also if it is null
  // NaN if it is null, absent, not a number or beyond 1e300.
  double number(const std::string& key) const;
  std::string text(const std::string& key) const;  // "" if it is not a text
  bool is_true(const std::string& key) const;
  // Any value, for people (number_text()); "-" if it is null or absent.
  std::string shown(const std::string& key) const;
  std::string json(const std::string& key) const;  // "" if it is absent
  std::optional<JsonObject> object(const std::string& key) const;
  // The elements of a list that have the type; empty if it is not a list. Other elements of numbers
  // are NaN.
  std::vector<double> numbers(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;
  std::vector<JsonObject> objects(const std::string& key) const;
  // Calls it with each member that is a number or null (NaN).
  void for_each_number(const std::function<void(const std::string&, double)>& call) const;

 private:
  struct Content;
  explicit JsonObject(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  std::shared_ptr<const Content> content_;
};

}  // namespace fleet
