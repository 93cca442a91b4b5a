// apply_overrides(): applies --set to a job file.

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "train/job.h"
#include "train/job_choices.h"

namespace fleet {
namespace {

constexpr char kOrigin[] = "--set";

struct Override {
  std::string path, value;
  bool removes() const { return value == "null" || value == "None"; }
  bool is_section() const { return value.starts_with('{') && path.find('.') == std::string::npos; }
};

Override parse(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(ErrorCode::kUsage, "'" + text + "' is not an override", kOrigin,
                "write --set key=value, such as --set data.batch_size=64");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// A shell leaves the inner quotes of 'key="text"', with which JSON writes the text.
std::string without_quotes(const std::string& value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return value;
  const auto text = Json::try_parse(value);
  return text && text->is_string() ? text->get<std::string>() : value;
}

// The content of one override: a value, or the values of an object, each below the path.
ConfigTree tree_of(const Override& given) {
  if (given.value.starts_with('{')) {
    return ConfigTree::from_json("{\"" + given.path + "\": " + given.value + "}",
                                 std::string(kOrigin) + " " + given.path);
  }
  ConfigTree tree;
  tree.set(given.path, without_quotes(given.value), kOrigin);
  return tree;
}

// The path in the schema, for any alias of a strategy field.
std::string named(const std::string& path) {
  if (path.find('.') == std::string::npos) return path;
  ConfigTree tree;
  tree.set(path, "", kOrigin);
  canonicalize_keys(tree);
  return tree.paths("").front();
}

std::vector<std::string> at_and_below(const ConfigTree& tree, const std::string& path) {
  std::vector<std::string> found = tree.paths(path + ".");
  if (!tree.origin(path).empty()) found.push_back(path);
  return found;
}

// Of two forms of one setting, the one in `content` replaces the other in the tree.
void replace_other_form(const ConfigTree& content, ConfigTree* tree) {
  constexpr std::pair<const char*, const char*> kForms[] = {
      {"data.threads", "data.auto.threads"},
      {"data.prefetch", "data.auto.prefetch"},
      {"train.class_weights.values", "train.class_weights.rule"}};
  for (const auto& [one, other] : kForms) {
    if (!content.origin(one).empty()) tree->remove(other);
    if (!content.origin(other).empty()) tree->remove(one);
  }
}

// A key that is not in the tree may still be in the schema, with a default.
void check_known(const ConfigTree& tree, const std::string& path) {
  std::vector<std::string> known;
  const Schema schema = job_schema(tree);
  for (const ConfigKey& key : schema.keys()) {
    if (key.path == path || key.path.starts_with(path + ".")) return;
    known.push_back(key.path);
  }
  throw Error(ErrorCode::kUsage, "unknown key '" + path + "'", kOrigin,
              path_suggestion(path, known));
}

// Replaces the whole section by the override, and adds a line about the other keys it had.
void replace_section(const Override& given, const ConfigTree& content, ConfigTree* tree,
                     std::vector<std::string>* lines) {
  std::vector<std::string> dropped;
  for (const std::string& path : tree->paths(given.path + ".")) {
    if (content.origin(path).empty()) dropped.push_back(path);
    tree->remove(path);
  }
  if (dropped.empty()) return;
  lines->push_back("--set " + given.path + "={...} replaces the whole section and drops " +
                   join(dropped, ", "));
}

}  // namespace

std::vector<std::string> apply_overrides(ConfigTree& tree,
                                         const std::vector<std::string>& overrides) {
  canonicalize_keys(tree);
  const ConfigTree before = tree;
  std::vector<std::string> lines, not_there;
  for (const std::string& text : overrides) {
    const Override given = parse(text);
    if (given.removes()) {
      const std::string path = named(given.path);
      const std::vector<std::string> found = at_and_below(tree, path);
      for (const std::string& key : found) tree.remove(key);
      if (found.empty()) not_there.push_back(path);
      continue;
    }
    ConfigTree content = tree_of(given);
    canonicalize_keys(content);  // the override replaces the file's value under any alias
    if (given.is_section()) replace_section(given, content, &tree, &lines);
    replace_other_form(content, &tree);
    tree.overlay(content);
  }
  const std::vector<std::string> dropped = drop_keys_of_former(before, &tree);
  lines.insert(lines.end(), dropped.begin(), dropped.end());
  for (const std::string& path : not_there) check_known(tree, path);
  return lines;
}

}  // namespace fleet
