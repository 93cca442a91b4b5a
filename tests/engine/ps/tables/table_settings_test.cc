#include "ps/tables/table_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

TEST(TableSettings, Defaults_AreARowForEachIdInMemory) {
  const TableSettings settings = some_settings("'dim': 8");
  EXPECT_EQ(settings.dim, 8);
  EXPECT_EQ(settings.rule.text("name"), "adagrad");
  EXPECT_EQ(settings.entry, TableSettings::Entry::kNone);
  EXPECT_EQ(settings.storage, "memory");
  EXPECT_EQ(settings.max_age + settings.ttl, 0);
}

TEST(TableSettings, SeveralTables_AreRead) {
  const ConfigTree tree = ConfigTree::from_json(
      R"({"tables": {"b": {"dim": 2}, "a": {"rule": {"name": "adam", "beta1": 0.5}}}})",
      "job.json");
  EXPECT_EQ(table_names(tree), (std::vector<std::string>{"a", "b"}));
  const Settings settings = tree.validate(tables_schema(tree));
  EXPECT_EQ(table_settings("a", settings.section("tables.a"), 1).rule.number("beta1"), 0.5);
}

TEST(TableSettings, KeysThatHaveNoEffect_AreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"'initializer': {'name': 'normal', 'low': 0}", "tables.ids.initializer.low"},
      {"'initializer': {'name': 'uniform', 'value': 0}", "tables.ids.initializer.value"},
      {"'initializer': {'low': 2, 'high': 1}", "tables.ids.initializer.low"},
      {"'entry': {'count': 3}", "tables.ids.entry.count"},
      {"'entry': {'kind': 'count', 'probability': 0.5}", "tables.ids.entry.probability"},
      {"'shrink': {'min_score': 2}", "tables.ids.shrink.min_score"},
      {"'storage': {'cache_memory': 50}", "tables.ids.storage.cache_memory"},
      {"'rule': {'low': 1, 'high': 0}", "tables.ids.rule.low"},
      {"'storage': {'kind': 'rockdb'}", "tables.ids.storage.kind"}};
  for (const auto& [json, key] : cases) {
    EXPECT_THAT(thrown_by([&] { some_settings(json); }), IsUsageError(key)) << json;
  }
}

TEST(TableSettings, KeysOfOtherRules_AreRefused) {
  EXPECT_THAT(thrown_by([] { some_settings("'rule': {'name': 'naive', 'beta1': 0.5}"); }),
              IsUsageError());
}

}  // namespace
}  // namespace fleet::ps
