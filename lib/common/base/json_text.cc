// JSON values from and to text, by nlohmann's parser and printer. No other file includes them.
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace fleet {
namespace {

using Tree = nlohmann::ordered_json;

// Builds a value from the parser's events.
class Builder final : public nlohmann::json_sax<Tree> {
 public:
  explicit Builder(const JsonCheck& check) : check_(check) {}

  Json take() { return std::move(root_); }
  const std::string& error() const { return error_; }

  bool null() override { return add_value(nullptr); }
  bool boolean(bool value) override { return add_value(value); }
  bool number_integer(int64_t value) override { return add_value(value); }
  bool number_unsigned(uint64_t value) override { return add_value(value); }
  bool number_float(double value, const std::string&) override { return add_value(value); }
  bool string(std::string& value) override { return add_value(std::move(value)); }
  bool binary(Tree::binary_t&) override { return false; }  // JSON has none

  bool start_object(size_t) override { return open(JsonEvent::kObject); }
  bool start_array(size_t) override { return open(JsonEvent::kArray); }
  bool key(std::string& name) override {
    announce(JsonEvent::kKey, name);
    open_.back().keys.push_back(std::move(name));
    return true;
  }
  bool end_object() override {
    Open done = close();
    return add(Json::object(std::move(done.keys), std::move(done.values)));
  }
  bool end_array() override {
    Open done = close();
    return add(Json::array(std::move(done.values)));
  }
  bool parse_error(size_t, const std::string&, const Tree::exception& error) override {
    error_ = error.what();
    return false;
  }

 private:
  // An object or array whose end is still to come.
  struct Open {
    std::vector<std::string> keys;
    std::vector<Json> values;
  };

  void announce(JsonEvent event, const std::string& key) const {
    if (check_) check_(event, static_cast<int>(open_.size()), key);
  }
  bool open(JsonEvent event) {
    announce(event, {});
    open_.emplace_back();
    return true;
  }
  Open close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    return done;
  }
  bool add_value(Json value) {
    announce(JsonEvent::kValue, {});
    return add(std::move(value));
  }
  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back().values.push_back(std::move(value));
    }
    return true;
  }

  const JsonCheck& check_;
  std::vector<Open> open_;
  Json root_;
  std::string error_;
};

bool parse_into(std::string_view text, bool comments, Builder* builder) {
  return Tree::sax_parse(text, builder, Tree::input_format_t::json, /*strict=*/true, comments);
}

Tree tree_of(const Json& json) {
  if (json.is_object()) {
    Tree tree = Tree::object();
    auto& members = tree.get_ref<Tree::object_t&>();
    const Json* value = json.begin();
    // Its emplace() would search for each key.
    for (const std::string& key : json.keys()) members.emplace_back(key, tree_of(*value++));
    return tree;
  }
  if (json.is_array()) {
    Tree tree = Tree::array();
    for (const Json& element : json) tree.push_back(tree_of(element));
    return tree;
  }
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return nullptr;
}

}  // namespace

Json Json::parse(std::string_view text, const JsonCheck& check, bool comments) {
  Builder builder(check);
  if (!parse_into(text, comments, &builder)) throw JsonError(builder.error());
  return builder.take();
}

std::optional<Json> Json::try_parse(std::string_view text) {
  const JsonCheck none;
  Builder builder(none);
  if (!parse_into(text, false, &builder)) return std::nullopt;
  return builder.take();
}

std::string Json::dump(int indent) const {
  try {
    return tree_of(*this).dump(indent);
  } catch (const Tree::exception& error) {
    throw JsonError(error.what());
  }
}

std::string Json::dump_lossy(int indent) const {
  return tree_of(*this).dump(indent, ' ', false, Tree::error_handler_t::replace);
}

}  // namespace fleet
