#include "ps/job_tables.h"

#include "optim/schedule.h"
#include "strategy/served_tables.h"

namespace fleet::ps {

std::vector<TableSettings> tables_of(const Job& job, const Program& program) {
  const auto seed = static_cast<uint64_t>(job.train.integer("seed"));
  std::vector<TableSettings> tables;
  for (const ServedTable& table : served_tables(program)) {
    tables.push_back(
        table_settings(table.name, job.settings.section("tables." + table.name), seed));
    TableSettings& settings = tables.back();
    settings.dim = static_cast<int>(table.dim);  // the model's, if the job gives none
    if (settings.rule.boolean("follow_schedule")) settings.base_rate = base_rate(job.schedule);
  }
  return tables;
}

}  // namespace fleet::ps

namespace fleet {

FLEET_JOB_SECTION(tables) { def.schema = ps::tables_schema; }

}  // namespace fleet
