#include <set>

#include "base/config.h"
#include "base/config_value.h"
#include "base/error.h"
#include "base/python_literals.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "base/text_file.h"

namespace fleet {

using config::Scalar;

namespace {

[[noreturn]] void given_twice(const std::string& path, const std::string& origin) {
  throw Error(ErrorCode::kUsage, "the key '" + path + "' is given twice", origin,
              "remove one of them");
}

// Limits for damaged or hostile files; real job files stay far below.
constexpr int64_t kLargestFile = 4 << 20;  // bytes
constexpr int kDeepest = 32, kMaxKeys = 2000;
constexpr size_t kLongestKey = 200;

// Refuses oversized input, and duplicate names in an object: the parser would silently keep one of
// the values.
class JobFileCheck {
 public:
  explicit JobFileCheck(const std::string& origin) : origin_(origin) {}
  void operator()(JsonEvent event, int depth, const std::string& key) {
    if (depth > kDeepest) too_much("is nested more than " + std::to_string(kDeepest) + " deep");
    if (event == JsonEvent::kKey && ++keys_ > kMaxKeys) {
      too_much("has more than " + std::to_string(kMaxKeys) + " keys");
    }
    if (event == JsonEvent::kKey && key.size() > kLongestKey) {
      too_much("has a key of more than " + std::to_string(kLongestKey) + " bytes");
    }
    if (event == JsonEvent::kObject) {
      names_.resize(depth + 1);
      names_.back().clear();
    } else if (event == JsonEvent::kKey) {
      path_.resize(depth);
      path_.back() = key;
      if (!names_[depth - 1].insert(path_.back()).second) given_twice(join(path_, "."), origin_);
    }
  }

 private:
  [[noreturn]] void too_much(const std::string& what) const {
    throw Error(ErrorCode::kUsage, "it " + what, origin_, "give a job file");
  }

  const std::string& origin_;
  int keys_ = 0;
  std::vector<std::set<std::string>> names_;  // by depth, of the objects that are open
  std::vector<std::string> path_;
};

}  // namespace

ConfigTree ConfigTree::from_json(std::string_view json, const std::string& origin) {
  Json root;
  try {
    root = Json::parse(json_from_python(json), JobFileCheck(origin), /*comments=*/true);
  } catch (const JsonError& error) {
    const std::string what = error.what();
    const size_t at = what.find("at line");
    throw Error(ErrorCode::kUsage,
                "not valid JSON " + (at == std::string::npos ? what : what.substr(at)), origin,
                "fix the syntax");
  }
  if (!root.is_object()) {
    throw Error(ErrorCode::kUsage, "not a JSON object", origin, "write { \"key\": value, ... }");
  }
  ConfigTree tree;
  const auto walk = [&](const auto& self, const Json& node, const std::string& prefix) -> void {
    for (const auto& [name, child] : node.items()) {
      std::string path = prefix;
      if (!path.empty()) path += '.';
      path += name;
      if (child.is_object() && !child.empty()) {
        self(self, child, path);
        continue;
      }
      if (child.is_object()) {
        tree.entries_[path + config::kEmptyObject] = {ConfigValue{Scalar("{}")}, origin};
        continue;
      }
      bool objects = false;
      const auto value = config::to_value(child, &objects);
      if (!value) {
        throw Error(ErrorCode::kUsage, "'" + path + "' cannot be " + child.dump_lossy(), origin,
                    child.is_null() ? "remove it to use its default"
                                    : "write a scalar, or a list of scalars");
      }
      if (!tree.entries_.emplace(path, Entry{*value, origin, false, objects}).second)
        given_twice(path, origin);
    }
  };
  walk(walk, root, "");
  return tree;
}

ConfigTree ConfigTree::from_file(const std::string& path) {
  std::string content;
  try {
    content = read_regular_file(path, kLargestFile);
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, error.failure(), path, "give the path of a job file");
  }
  return from_json(plain_text(std::move(content), path), path);
}

void ConfigTree::set(const std::string& path, std::string_view text, const std::string& origin) {
  if (text.starts_with('[')) {
    const auto parsed = Json::try_parse(json_from_python(text));
    bool objects = false;
    const auto value = parsed ? config::to_value(*parsed, &objects) : std::nullopt;
    if (value) {
      entries_[path] = {*value, origin, false, objects};
      return;
    }
  }
  entries_[path] = {ConfigValue{Scalar(std::string(text))}, origin, /*untyped=*/true};
}

std::optional<std::string> ConfigTree::peek(const std::string& path) const {
  const auto found = entries_.find(path);
  if (found == entries_.end()) return std::nullopt;
  const Scalar* scalar = std::get_if<Scalar>(&found->second.value.value);
  if (scalar && std::holds_alternative<std::string>(*scalar)) return std::get<std::string>(*scalar);
  return found->second.value.text();
}

std::string ConfigTree::origin(const std::string& path) const {
  const auto found = entries_.find(path);
  return found == entries_.end() ? std::string() : found->second.origin;
}

std::vector<std::string> ConfigTree::paths(const std::string& prefix) const {
  std::vector<std::string> found;
  for (auto it = entries_.lower_bound(prefix);
       it != entries_.end() && it->first.starts_with(prefix); ++it) {
    found.push_back(it->first);
  }
  return found;
}

void ConfigTree::overlay(const ConfigTree& other) {
  for (const auto& [path, entry] : other.entries_) entries_[path] = entry;
}

void ConfigTree::rename(const std::string& from, const std::string& to) {
  auto node = entries_.extract(from);
  FLEET_CHECK(!node.empty(), "there is no '" + from + "'");
  entries_.erase(to);
  node.key() = to;
  entries_.insert(std::move(node));
}

}  // namespace fleet
