#include "ps/tables/table_rule.h"

namespace fleet::ps {

Registry<TableRuleDef>& table_rules() {
  static Registry<TableRuleDef> registry("table rule");
  return registry;
}

Schema table_rule_schema(const std::string& name) {
  const TableRuleDef& def = table_rules().get(name);
  return Schema()
      .choice("name", name, table_rules().names(), "update rule of the rows")
      .number("learning_rate", def.learning_rate, 0, 1e6,
              "factor of the gradient where the schedule of the job is at learning_rate.base")
      .boolean("follow_schedule", true,
               "multiply the rate by the factor of the job's schedule (warm-up and decay), as that "
               "of dense parameters; false: it is constant")
      .number("low", -10, -1e30, 1e30, "smallest value after an update")
      .number("high", 10, -1e30, 1e30, "largest value after an update")
      .section("", def.schema);
}

std::unique_ptr<TableRule> make_table_rule(const Settings& settings) {
  const TableRule::Common common{.learning_rate = settings.number("learning_rate"),
                                 .low = settings.number("low"),
                                 .high = settings.number("high")};
  return table_rules().get(settings.text("name")).make(common, settings);
}

}  // namespace fleet::ps
