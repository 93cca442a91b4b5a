// The rows of tables that a trainer in mode geo has used: it trains them itself.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/executor.h"
#include "exec/parameter_exchange.h"
#include "ps/row_push.h"
#include "ps/table_client.h"
#include "ps/tables/block_arena.h"
#include "ps/tables/row_chunks.h"
#include "ps/tables/table_rule.h"
#include "ps/tables/table_settings.h"
#include "ps/trainer_tables.h"
#include "strategy/served_tables.h"
#include "train/job_facts.h"

namespace fleet::ps {

// The memory that rows may take.
struct MemoryLeft {
  std::function<size_t()> available = available_host_memory;  // bytes; 0: unknown
  // Checked each time a table's rows grow by this many bytes; as many must be left.
  size_t step = size_t{64} << 20;
};

// A row is pulled when its id first occurs in a batch of this trainer, and stays. An exchange has
// the recurrence of geo_client.h, and its traffic follows the rows that were used: the trainer
// sends differences of rows that it has trained since the last exchange, and receives the rows that
// any trainer has sent since then. The states of the rule begin with the row, and are this
// trainer's own.
//
// For one thread.
class GeoTables : public TrainerTables {
 public:
  // settings: each table's, in the same order.
  GeoTables(std::vector<ServedTable> tables, const std::vector<TableSettings>& settings,
            TableClientOptions options, int trainers, MemoryLeft memory = {});
  ~GeoTables();

  // Forgets all rows.
  void clear();
  // Before a step on this batch: feeds its rows, and pulls new ones. kNoMemory naming the table if
  // too little memory is left for its rows.
  void feed_rows(Executor& executor, const ParameterExchange::Columns& columns);
  // After collect(): either updates the rows by the rule, at the rate that goes with the dense
  // parameters' one, or not.
  void update(float learning_rate);
  void leave_out();
  // Pulls these rows, if this trainer has not used them.
  void restore_merged_rows(std::vector<MergedRows> rows);
  // An exchange: the differences of rows that were updated since the last one; then, for each
  // server, a request, and their answers.
  RowPush take_differences();
  void request_changes(int server) const;
  void receive_changes();

  // This trainer's values of a row; empty if it has not used the row.
  std::vector<float> row(int table, uint64_t id) const;
  // The values that the servers had at the last exchange, with the part of this trainer's changes
  // that they have received.
  std::vector<float> old(int table, uint64_t id) const;

 private:
  struct Touched {
    uint64_t id;
    uint32_t row;
    float shows, clicks;  // since the last exchange
  };
  struct Table;

  // occurrences: by id.
  void request_new(size_t table, std::span<const uint64_t> ids,
                   std::span<const uint32_t> occurrences);
  void receive_new(size_t table);
  void check_memory(Table& table) const;

  std::vector<std::unique_ptr<Table>> tables_;  // as batches()
  const TableClientOptions options_;
  const float trainers_;
  const MemoryLeft memory_;
};

}  // namespace fleet::ps
