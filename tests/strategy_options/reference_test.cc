// Every option has a row, and docs/reference/strategies.md is what the program prints.
#include "strategy/reference.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "strategy/names.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Reference, EachField_HasARowWithHelp) {
  const std::vector<OptionRow> rows = option_rows();
  ASSERT_EQ(rows.size(), field_paths().size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].path, field_paths()[i]);
    EXPECT_NE(rows[i].help, "") << rows[i].path << ": give it a (help) in strategy.proto";
    EXPECT_NE(rows[i].initial, "") << rows[i].path;
  }
}

TEST(Reference, EachMetaOptimizer_SaysWhenToUseItAndWhatItCosts) {
  for (const std::string& name : meta_optimizer_registry().names()) {
    const MetaOptimizerDef& def = meta_optimizer_registry().get(name);
    EXPECT_NE(def.help, "") << name;
    EXPECT_NE(def.when, "") << name << ": give it a `when`";
    EXPECT_NE(def.cost, "") << name << ": give it a `cost`";
  }
}

TEST(Reference, Defaults_AreTheDescriptors) {
  const std::string text = "\n" + reference_text();
  const auto has = [&](const std::string& line) { return text.find(line) != std::string::npos; };
  EXPECT_TRUE(has("amp_configs.decr_ratio = 0.8  (amp) "));
  EXPECT_TRUE(has("\nbuild_strategy.debug_graphviz_path = none  (debug_graphviz_path"));
  EXPECT_TRUE(has("\nmode = COLLECTIVE  (default only) "));
  EXPECT_TRUE(has("from 0 to 1"));
  EXPECT_TRUE(has("; also thread_num"));
  EXPECT_TRUE(has("build_strategy.fuse_bn_act_ops = false, unset: on  (fuse_bn_act) "));
  EXPECT_TRUE(has("build_strategy.fuse_bn_add_act_ops = true  (fuse_bn_add_act) "));
}

TEST(Reference, CompetingMetaOptimizers_NameWhatTheyGoWith) {
  EXPECT_THAT(compatibility_text(meta_optimizer_registry().get("amp")), HasSubstr("it wraps "));
  EXPECT_THAT(compatibility_text(meta_optimizer_registry().get("amp")),
              HasSubstr("gradient_merge"));
  EXPECT_EQ(compatibility_text(meta_optimizer_registry().get("fuse_bn_act")), "all others");
}

TEST(Reference, Page_IsWhatTheProgramPrints) {
  const std::string page = read_file(source_folder() + "/docs/reference/strategies.md");
  const std::string begin = "<!-- generated: scripts/strategies_page.sh -->\n";
  const std::string end = "<!-- end of what is generated -->\n";
  const size_t from = page.find(begin), to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::string generated = page.substr(from + begin.size(), to - from - begin.size());
  EXPECT_TRUE(generated == reference_markdown())
      << "docs/reference/strategies.md is not what the program prints: run "
         "scripts/strategies_page.sh";
}

}  // namespace
}  // namespace fleet
