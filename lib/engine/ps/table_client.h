// A trainer's side of the tables on servers (table_host.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "exec/parameter_exchange.h"
#include "ps/connection.h"
#include "ps/row_push.h"
#include "ps/table_deltas.h"
#include "ps/table_payload.h"
#include "ps/tables/missing_rows.h"
#include "ps/tables/table_settings.h"
#include "ps/trainer_tables.h"
#include "strategy/served_tables.h"

namespace fleet::ps {

struct TableClientOptions {
  int trainer = 0, servers = 1;
  int64_t deltas = 0;  // snapshots of changes between two whole ones
  std::function<void(int server, Message message)> send;  // from any thread
  std::function<Message(int server, MessageType type)> wait;
};

// For one thread; save() and send() for any.
class TableClient : public TrainerTables {
 public:
  // settings: each table's, in the same order.
  TableClient(std::vector<ServedTable> tables, const std::vector<TableSettings>& settings,
              TableClientOptions options);

  // Pulls the rows of a batch and feeds them, and the places of its ids.
  void feed_rows(Executor& executor, const ParameterExchange::Columns& columns, int64_t step,
                 bool evaluation);
  // The gradients of an update: those of the rows of the last batch, and of the merged ones. Calls
  // collect().
  RowPush gradients(Executor& executor);
  void send(RowPush push, uint64_t sequence, int64_t step) const;
  void restore_merged_rows(std::vector<MergedRows> rows);
  // Trainer 0: the tables of the checkpoint in this folder. The others do nothing.
  void load(const std::string& folder);
  void cut();
  // Returns the folder of another checkpoint that this one needs; "": none.
  std::string save(const std::string& folder);
  // All trainers, between two steps, and not during a save: ages the rows of all tables by one, and
  // removes those of `age` and more.
  void shrink(int64_t step, int64_t age);
  // A line about lookups of ids without rows, for each table that had some since the last call.
  std::vector<std::string> missing_lines();

 private:
  struct Part {                     // a part of the batch, on a server
    std::vector<uint32_t> numbers;  // places in the batch's ids, ascending
    std::vector<uint64_t> ids;
  };
  struct Table {
    std::vector<Part> parts = {};  // by server
    int64_t looked_up = 0;         // ids of evaluations since the last missing_lines()
    MissingRows missing = {};
  };

  void divide(size_t table);
  void send_pulls(size_t table, int64_t step, bool evaluation);
  void take_rows(size_t table, bool evaluation);
  RowPart rows_of(size_t table, const Part& part) const;
  void add_merged(size_t table, RowPush* push) const;
  std::vector<Json> command(const Json& command);
  void command_to(int server, const Json& command) const;

  std::vector<Table> tables_;  // as batches()
  const TableClientOptions options_;
  uint64_t cuts_ = 0;
  TableDeltas deltas_;
};

}  // namespace fleet::ps
