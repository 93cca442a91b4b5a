// The configuration tree: values by dotted path with their origin, and schemas that registered
// things declare. Precedence is flag > environment > file > default: a tree's builder sets values
// in the reverse order, and later ones replace earlier ones.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fleet {

// A scalar or a list of scalars.
struct ConfigValue {
  using Scalar = std::variant<bool, int64_t, double, std::string>;
  std::variant<Scalar, std::vector<Scalar>> value;
  std::string text() const;  // as JSON
};

enum class ConfigType { kBool, kInteger, kNumber, kText, kIntegers, kNumbers, kTexts };

struct ConfigKey {
  std::string path;
  ConfigType type;
  std::optional<ConfigValue> initial;  // the default; nullopt: the key is required
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices;  // allowed values; empty: any
  std::string help;                  // one line
  bool is_path = false;              // texts: "~/" is expanded (base/home_folder.h)
  bool objects = false;              // texts: may be JSON objects, each as its text
};

// The known keys. Paths are dotted ("image.size"). Each call adds one key and returns the schema.
class Schema {
 public:
  Schema& boolean(std::string path, bool initial, std::string help);
  Schema& integer(std::string path, int64_t initial, double min, double max, std::string help);
  Schema& number(std::string path, double initial, double min, double max, std::string help);
  Schema& text(std::string path, std::string initial, std::string help);
  Schema& choice(std::string path, std::string initial, std::vector<std::string> choices,
                 std::string help);
  Schema& integers(std::string path, std::vector<int64_t> initial, std::string help);
  Schema& numbers(std::string path, std::vector<double> initial, std::string help);
  Schema& texts(std::string path, std::vector<std::string> initial, std::string help);
  // The key added last is a path, or a list, for which one path may stand: "~/" is expanded.
  Schema& as_path();
  // The key added last, a list of texts, may have JSON objects, each as its text on one line.
  Schema& or_objects();
  // The key added last has no default: leaving it out is an error.
  Schema& required();
  // All keys of `inner`, below `prefix` ("" for this level).
  Schema& section(const std::string& prefix, const Schema& inner);
  const std::vector<ConfigKey>& keys() const { return keys_; }
  // One line per key: path, type, range or choices, default, help.
  std::string help() const;

 private:
  ConfigKey& add(std::string path, ConfigType type, ConfigValue initial, std::string help);
  std::vector<ConfigKey> keys_;
};

// Values checked against a schema: every key has one.
class Settings {
 public:
  bool boolean(const std::string& path) const;
  int64_t integer(const std::string& path) const;
  double number(const std::string& path) const;
  const std::string& text(const std::string& path) const;
  std::vector<int64_t> integers(const std::string& path) const;
  std::vector<double> numbers(const std::string& path) const;
  std::vector<std::string> texts(const std::string& path) const;
  // The value as JSON, whatever its type.
  std::string json(const std::string& path) const { return entry(path).value.text(); }
  // Whether the schema has this key.
  bool has(const std::string& path) const { return entries_.contains(path); }
  // Whether the user set it; false for a default.
  bool given(const std::string& path) const;
  // "job.json", "--set", "environment X", "default"
  const std::string& origin(const std::string& path) const;
  // The keys below prefix, without it.
  Settings section(const std::string& prefix) const;
  // One line per value, "path = value  (origin)", for --print_config.
  std::string print() const;

 private:
  friend class ConfigTree;
  struct Entry {
    ConfigValue value;
    std::string origin;
  };
  const Entry& entry(const std::string& path) const;
  template <typename T>
  const T& scalar(const std::string& path) const;
  std::map<std::string, Entry> entries_;
};

class ConfigTree {
 public:
  // A JSON object (// comments allowed, and Python's spellings: base/python_literals.h). kUsage
  // with line and column on a syntax error.
  static ConfigTree from_json(std::string_view json, const std::string& origin);
  static ConfigTree from_file(const std::string& path);
  // Sets a value from text: "64", "true", "[1, 2]", "1,2" or any other text. An object, "{'a': 1}",
  // sets several values below the path.
  void set(const std::string& path, std::string_view text, const std::string& origin);
  // The raw text of a value before validation, to find out which registered thing declares the
  // other keys.
  std::optional<std::string> peek(const std::string& path) const;
  // "" if there is no such value.
  std::string origin(const std::string& path) const;
  // The paths of existing values that equal `prefix` or begin with it.
  std::vector<std::string> paths(const std::string& prefix) const;
  // Copies all values of the other tree; they replace values at the same path.
  void overlay(const ConfigTree& other);
  // Moves a value to another path and replaces any value there.
  void rename(const std::string& from, const std::string& to);
  // Restores the default.
  void remove(const std::string& path) { entries_.erase(path); }
  // Checks each value's name, type, range and choice, and fills in defaults. Throws kUsage naming
  // path, origin and the nearest known key.
  Settings validate(const Schema& schema) const;

 private:
  struct Entry {
    ConfigValue value;
    std::string origin;
    bool untyped = false;  // came as text: the schema decides its type
    bool objects = false;  // a list with JSON objects, each as its text
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace fleet
