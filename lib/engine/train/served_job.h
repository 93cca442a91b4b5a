// Jobs with parameter servers (strategy/meta/parameter_servers.cc).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/parameter_exchange.h"
#include "graph/program.h"
#include "strategy/served_tables.h"
#include "tensor/column.h"
#include "train/job.h"

namespace fleet {

// The parameter servers of a job, which make the updates of its trainers.
struct Servers {
  int count = 0;  // 0: collective training
  // Connects a trainer whose executor runs this Program, made for data with these columns. Not null
  // with servers.
  std::function<std::unique_ptr<ParameterExchange>(const Program&, const std::vector<Column>&)>
      connect = {};
};

// kUsage or kUnsupported naming the key of a job that parameter servers cannot train. The strategy
// checks its own fields, and servers check the update rule.
void check_served_job(const Job& job);

// The job's tables, for serve_tables().
std::vector<TableRequest> requests_of(const Job& job);

// Whether trainers do not wait for each other in a step: with parameter servers in async and geo.
bool trainers_run_apart(const Job& job, int servers);

// Columns as text and back. Servers have no data, but build the same Program. kInternal for other
// text.
std::string columns_text(const std::vector<Column>& columns);
std::vector<Column> columns_from_text(const std::string& text);

}  // namespace fleet
