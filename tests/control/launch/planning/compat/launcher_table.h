// The tables of launchers/: every option of another launcher, and what fleetrun makes of it.
//
//   launcher: deepspeed
//   abbreviates: yes            its parser takes unique beginnings of long flags
//   company: --no_ssh_check     an option that only this launcher has; it stands on every line
//   environment: A=B            variables of fleetrun
//
//   FLAGS [VALUE] | VERDICT | WHAT THE OPTION CHANGES | OTHER OPTIONS OF THE LINE
//
// VERDICT: same, no effect or refused. A change is KEY=VALUE of a setting of fleetrun, or
// NAME=VALUE of a variable of the ranks, or only the name of one that the option removes. $PWD is
// the working directory.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "launch/planning/arguments.h"
#include "tests/test_paths.h"

namespace fleet {

using Effects = std::map<std::string, std::string>;
using Changes = std::map<std::string, std::optional<std::string>>;  // nullopt: removed

struct LauncherRow {
  std::string where;                // "deepspeed.txt line 7"
  std::vector<std::string> flags;   // "-H", "--hostfile"
  std::vector<std::string> values;  // empty: a switch
  std::string verdict;
  Changes changes;
  std::vector<std::string> with;
};

struct LauncherTable {
  std::string launcher, version;
  bool abbreviates = false;
  std::vector<std::string> company;
  std::vector<std::string> environment;  // NAME=VALUE
  std::vector<LauncherRow> rows;
};

inline LauncherRow read_row(const std::string& line, const std::string& where) {
  std::vector<std::string> columns = split(line, '|');
  columns.resize(std::max<size_t>(columns.size(), 4));
  LauncherRow row{where, {}, {}, columns[1], {}, shell_words(columns[3], where)};
  for (const std::string& word : shell_words(columns[0], where)) {
    const bool is_flag = word.starts_with('-') && word.find(' ') == std::string::npos;
    (is_flag && row.values.empty() ? row.flags : row.values).push_back(word);
  }
  for (const std::string& change : shell_words(columns[2], where)) {
    const size_t equals = change.find('=');
    std::optional<std::string>& value = row.changes[change.substr(0, equals)];
    if (equals == std::string::npos) continue;
    value = change.substr(equals + 1);
    if (*value == "$PWD") value = std::filesystem::current_path().string();
  }
  return row;
}

inline LauncherTable read_table(const std::string& name) {
  LauncherTable table;
  const std::string folder = "/tests/control/launch/planning/compat/launchers/";
  std::ifstream file(source_folder() + folder + name);
  EXPECT_TRUE(file) << name;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    const std::string where = name + " line " + std::to_string(++number);
    const std::string value(trim(line.substr(std::min(line.find(':') + 1, line.size()))));
    if (line.empty()) continue;
    if (line.starts_with('-')) {
      table.rows.push_back(read_row(line, where));
    } else if (line.starts_with("launcher:")) {
      table.launcher = value;
    } else if (line.starts_with("version:")) {
      table.version = value;
    } else if (line.starts_with("abbreviates:")) {
      table.abbreviates = value == "yes";
    } else if (line.starts_with("company:")) {
      table.company = shell_words(value, where);
    } else if (line.starts_with("environment:")) {
      table.environment = shell_words(value, where);
    }
  }
  return table;
}

// The settings and the variables of the ranks that a line yields.
inline Effects effects_of(const LaunchRequest& request) {
  using Action = LaunchRequest::Action;
  if (request.action == Action::kHelp) return {{"action", "help"}};
  if (request.action == Action::kVersion) return {{"action", "version"}};
  if (request.action == Action::kPrintCompletion) return {{"action", "completion"}};
  Effects effects;
  for (const std::string& flag : given_flags(request, {"export"})) {
    const size_t equals = flag.find('=');
    effects[flag.substr(2, equals - 2)] = flag.substr(equals + 1);
  }
  for (const std::string& variable : request.config.exported) {
    const size_t equals = std::min(variable.find('='), variable.size());
    effects[variable.substr(0, equals)] = variable.substr(std::min(equals + 1, variable.size()));
  }
  return effects;
}

}  // namespace fleet
