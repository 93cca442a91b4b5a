#include "train/job_choices.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/pipeline.h"
#include "models/losses.h"
#include "models/model.h"
#include "models/task.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace fleet {
namespace {

struct Choice {
  const char* section;    // section of the keys
  const char* key;        // below the section; "": the choice is a key of its own
  const char* otherwise;  // default if nothing is chosen; "": a choice is required
  const char* kind;       // for messages
  std::vector<std::string> (*names)();
  Schema (*schema)(const std::string& name);
  const char* alone = "";                                  // the choice's key then,
  std::string (*help)(const std::string& name) = nullptr;  // and its help
  std::string path() const { return *key ? std::string(section) + "." + key : alone; }
};

Schema model_section(const std::string& name) {
  const ModelDef& def = model_registry().get(name);
  return Schema().text("name", name, "the network").section("", def.schema);
}

const std::vector<Choice>& choices() {
  static const std::vector<Choice> all = {
      {"model", "name", "", "model", [] { return model_registry().names(); }, model_section},
      {"data", "source", "image_list", "source", [] { return data::sources().names(); },
       data::data_schema},
      {"optimizer", "name", "sgd", "optimizer", [] { return optimizer_registry().names(); },
       optimizer_schema},
      {"learning_rate", "name", "constant", "schedule", [] { return schedule_registry().names(); },
       schedule_schema},
      {"train", "", "image_classification", "task", [] { return task_registry().names(); },
       task_schema, "task",
       [](const std::string& name) { return task_registry().get(name).help; }}};
  return all;
}

std::string chosen(const Choice& choice, const ConfigTree& tree) {
  return tree.peek(choice.path()).value_or(choice.otherwise);
}

std::set<std::string> keys_of(const Choice& choice, const std::string& name) {
  std::set<std::string> keys;
  const Schema schema = choice.schema(name);
  for (const ConfigKey& key : schema.keys())
    keys.insert(std::string(choice.section) + "." + key.path);
  return keys;
}

bool exists(const Choice& choice, const std::string& name) {
  const std::vector<std::string> names = choice.names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The names other than `name` that have this key.
std::vector<std::string> owners(const Choice& choice, const std::string& name,
                                const std::string& path) {
  std::vector<std::string> all;
  for (const std::string& other : choice.names()) {
    if (other != name && keys_of(choice, other).contains(path)) all.push_back(other);
  }
  return all;
}

}  // namespace

bool from_override(const std::string& origin) { return origin.starts_with("--"); }

// Says what a job without a required choice has instead: another type, or a mistyped section.
static void explain_missing(const Choice& choice, const ConfigTree& tree) {
  const std::string section = choice.section, like = "{\"" + std::string(choice.key) + "\": ";
  if (const auto text = tree.peek(section)) {
    throw Error(ErrorCode::kUsage, "'" + section + "' must be an object", tree.origin(section),
                "write " + like + "\"" + *text + "\"}");
  }
  const std::vector<std::string> wanted = {section};
  for (const std::string& path : tree.paths("")) {
    const std::string top = path.substr(0, path.find('.'));
    if (top == section || suggestion(top, wanted) != "did you mean '" + section + "'?") continue;
    throw Error(ErrorCode::kUsage, "unknown section '" + top + "'", tree.origin(path),
                "did you mean '" + section + "'?");
  }
}

Schema chosen_sections(const ConfigTree& tree) {
  Schema schema;
  for (const Choice& choice : choices()) {
    const std::string name = chosen(choice, tree);
    if (name.empty()) {
      explain_missing(choice, tree);
      throw Error(ErrorCode::kUsage, "the required key '" + choice.path() + "' is missing", {},
                  "known " + std::string(choice.kind) + "s: " + join(choice.names(), ", "));
    }
    try {
      schema.section(choice.section, choice.schema(name));
      if (*choice.alone) {
        schema.choice(choice.alone, choice.otherwise, choice.names(), choice.help(name));
      }
    } catch (const Error& error) {
      throw Error(ErrorCode::kUsage, error.failure(), choice.path(), error.next());
    }
  }
  return schema;
}

std::vector<std::string> drop_keys_of_former(const ConfigTree& before, ConfigTree* tree) {
  std::vector<std::string> lines;
  for (const Choice& choice : choices()) {
    const std::string former = chosen(choice, before), name = chosen(choice, *tree);
    if (former == name || !exists(choice, former) || !exists(choice, name)) continue;
    const std::set<std::string> known = keys_of(choice, name), old = keys_of(choice, former);
    std::vector<std::string> dropped;
    for (const std::string& path : tree->paths(std::string(choice.section) + ".")) {
      if (known.contains(path) || !old.contains(path) || from_override(tree->origin(path)))
        continue;
      dropped.push_back(path);
      tree->remove(path);
    }
    if (dropped.empty()) continue;
    lines.push_back(choice.path() + " is " + name + " now: ignoring the keys of " + former + ": " +
                    join(dropped, ", "));
  }
  return lines;
}

void refuse_keys_of_others(const ConfigTree& tree) {
  std::vector<Error> errors;
  for (const Choice& choice : choices()) {
    const std::string name = chosen(choice, tree);
    if (!exists(choice, name)) continue;
    const std::set<std::string> known = keys_of(choice, name);
    for (const std::string& path : tree.paths(std::string(choice.section) + ".")) {
      if (known.contains(path)) continue;
      const std::vector<std::string> others = owners(choice, name, path);
      if (others.empty()) continue;
      errors.emplace_back(ErrorCode::kUsage,
                          "'" + path + "' belongs to the " + choice.kind + " " +
                              join(others, " or ") + ", not to " + name,
                          tree.origin(path), "remove it, or set " + choice.path());
    }
  }
  if (errors.empty()) return;
  if (errors.size() == 1) throw errors[0];
  std::string text = std::to_string(errors.size()) + " settings cannot be used:";
  for (const Error& error : errors) text += std::string("\n  ") + error.what();
  throw Error(ErrorCode::kUsage, text);
}

}  // namespace fleet
