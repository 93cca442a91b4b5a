// For each subset of the meta-optimizers, those that act, compared with the outcomes of Paddle's
// own strategy compiler in golden/paddle_2.6.2_combinations.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_text.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

// A job that the file has a column for.
struct Column {
  const char* optimizer;
  int ranks;
  bool without_graph;
};
constexpr Column kColumns[] = {
    {"momentum", 1, false}, {"momentum", 2, false}, {"adam", 1, false}, {"adam", 2, false},
    {"momentum", 1, true},  {"momentum", 2, true},  {"adam", 1, true},  {"adam", 2, true}};

struct Table {
  std::map<char, std::string> names, classes;  // by letter
  std::vector<std::vector<std::string>> rows;  // the subset, then an outcome for each column
};

const Table& table() {
  static const Table table = [] {
    Table read;
    const auto file = std::filesystem::path(source_folder()) /
                      "tests/engine/strategy/golden/paddle_2.6.2_combinations.txt";
    for (const std::string& line : split(read_file(file), '\n')) {
      const std::vector<std::string> words = split(line, ' ');
      if (words.size() == 3 && words[0] == "#" && words[1][1] == '=') {
        read.names[words[1][0]] = words[1].substr(2);
        read.classes[words[1][0]] = words[2];
      } else if (words.size() == 1 + std::size(kColumns) && words[0] != "#") {
        read.rows.push_back(words);
      }
    }
    return read;
  }();
  return table;
}

std::set<std::string> names_of(const std::string& letters) {
  std::set<std::string> names;
  for (const char letter : letters) {
    if (letter != '-') names.insert(table().names.at(letter));
  }
  return names;
}

bool registered(const std::string& name) { return meta_optimizer_registry().find(name); }

std::string text_of(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + ": true\n";
  if (names.contains("gradient_merge")) text += "gradient_merge_configs { k_steps: 2 }\n";
  if (names.contains("recompute")) text += "recompute_configs { checkpoints: \"fc\" }\n";
  return text;
}

struct Outcome {
  std::set<std::string> act;
  std::string captured_log;
};

Outcome outcome_of(const std::set<std::string>& asked, const Column& column) {
  PassContext context{.ranks = column.ranks, .optimizer = column.optimizer};
  context.low_types = {DType::kBFloat16};
  Outcome outcome;
  outcome.captured_log = captured_log([&] {
    const Strategy strategy(strategy_proto(text_of(asked)), context);
    for (const std::string& name : strategy.names()) {
      if (asked.contains(name)) outcome.act.insert(name);
    }
  });
  return outcome;
}

std::string text(const Column& column) {
  return std::string(column.optimizer) + ", " + std::to_string(column.ranks) + " ranks" +
         (column.without_graph ? ", without_graph_optimization" : "");
}

// Each of those that are switched off has one line, which says why and what to do: because of the
// job, or of one that acts.
void expect_lines(const std::set<std::string>& asked, const Outcome& outcome) {
  std::map<std::string, std::string> lines;  // by who is switched off
  for (const std::string& line : split(outcome.captured_log, '\n')) {
    const size_t end = line.find(" is switched off: "), begin = line.find("strategy: ") + 10;
    if (end == std::string::npos) continue;
    EXPECT_TRUE(lines.emplace(line.substr(begin, end - begin), line).second) << line;
  }
  std::set<std::string> off;
  for (const auto& [name, line] : lines) {
    off.insert(name);
    EXPECT_NE(line.find("remove " + name), std::string::npos) << line;
    if (line.find("it cannot be combined with") == std::string::npos) continue;
    EXPECT_TRUE(std::any_of(outcome.act.begin(), outcome.act.end(), [&](const std::string& winner) {
      return line.find(winner) != std::string::npos;
    })) << line;
  }
  std::set<std::string> lost;
  std::set_difference(asked.begin(), asked.end(), outcome.act.begin(), outcome.act.end(),
                      std::inserter(lost, lost.end()));
  EXPECT_EQ(off, lost);
}

TEST(Combinations, Table_HasEverySubset) {
  EXPECT_EQ(table().names.size(), 11u);
  std::set<std::string> subsets;
  for (const auto& row : table().rows) subsets.insert(row[0]);
  EXPECT_EQ(subsets.size(), 1024u);
}

// Rows with a meta-optimizer that does not exist here yet are passed over.
TEST(Combinations, EverySubset_ActsAsInPaddle) {
  int compared = 0;
  for (const auto& row : table().rows) {
    std::set<std::string> asked = names_of(row[0]);
    if (!std::all_of(asked.begin(), asked.end(), registered)) continue;
    for (size_t i = 0; i < std::size(kColumns); ++i) {
      std::set<std::string> also = asked;
      if (kColumns[i].without_graph) also.insert("without_graph_optimization");
      SCOPED_TRACE(row[0] + " with " + text(kColumns[i]));
      const Outcome outcome = outcome_of(also, kColumns[i]);
      EXPECT_EQ(outcome.act, names_of(row[1 + i]));
      expect_lines(also, outcome);
      ++compared;
    }
  }
  size_t known = 0;
  for (const auto& [letter, name] : table().names) known += letter != 'W' && registered(name);
  EXPECT_EQ(compared, 8 << known);
  EXPECT_GE(known, 6u);
}

// Each competing meta-optimizer that Paddle has appears in the table, in the order of its class.
TEST(Combinations, EveryCompetitor_IsInTheTable) {
  for (const std::string& name : meta_optimizer_registry().names()) {
    const std::string& paddle_class = meta_optimizer_registry().get(name).paddle_class;
    if (paddle_class.empty() || name.starts_with("test_")) continue;
    if (name == "bf16_allreduce") continue;
    const auto found = std::find_if(table().names.begin(), table().names.end(),
                                    [&](const auto& entry) { return entry.second == name; });
    ASSERT_NE(found, table().names.end()) << name << ": add it to golden/make_combinations.py";
    EXPECT_EQ(paddle_class, table().classes.at(found->first)) << name;
  }
}

}  // namespace
}  // namespace fleet
