// A server's shards of the job's tables. table_host_commands.cc has the commands of trainer 0.
//
// A step in sync: each trainer pulls the rows of its batch, and pushes gradients of these rows.
// When all have pushed, each touched row is updated once, from the sum over the trainers in the
// order of their ranks, as the gradient of a dense parameter. A trainer without the row counts as
// zero.
//
// Results are the same for any order of arrival: if ids are admitted by count, the pulls of a step
// are answered together, from the occurrences in all batches.
//
// In async and geo, pulls are answered at once, and the rows of a push are applied with the push of
// dense blocks that follows it.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread.h"
#include "ps/geo_recorder.h"
#include "ps/table_payload.h"
#include "ps/tables/snapshot.h"
#include "ps/tables/sparse_table.h"
#include "strategy/server_settings.h"

namespace fleet::ps {

// A message for a trainer.
struct RowAnswer {
  int trainer = 0;
  Message message = {};
};
using RowAnswers = std::vector<RowAnswer>;

// An update of all tables.
struct TableUpdate {
  int64_t from = 0, to = 0;  // training steps that the rows include before and after it
  bool left_out = false;     // drops the pushes
  float learning_rate = 0;   // the dense parameters'
};

// For use by one thread. kInternal for messages that do not fit the tables.
class TableHost {
 public:
  // tables: in the order of their names, as MessageHeader::table counts them.
  TableHost(std::vector<TableSettings> tables, int server, int servers, int trainers,
            ServerMode mode = ServerMode::kSync);
  ~TableHost();

  bool empty() const { return tables_.empty(); }
  int size() const { return static_cast<int>(tables_.size()); }
  RowAnswers pull(int trainer, Message message);
  void push(int trainer, Message message);
  // The pushes of all trainers have arrived.
  void update(const TableUpdate& update);
  // In async and geo: the push of a trainer has arrived. The others as in TableUpdate.
  void apply_push(int trainer, bool left_out, float learning_rate);
  // In async and geo: the slowest trainer has come from step `before` to `after`.
  void advance(int64_t before, int64_t after);
  // In async and geo: the trainer has ended.
  void leave(int trainer);
  // In async and geo: another process has taken the place of this trainer. Nothing that the lost
  // one has only begun counts: rows without the push that follows them, a snapshot.
  void replace(int trainer);
  RowAnswers command(int trainer, const Message& message);
  // Results of commands that were still at work.
  RowAnswers poll();
  // Trainers whose pulls wait for those of others.
  std::vector<int> waiting() const;
  bool works() const { return result_ != nullptr; }  // poll() has something to wait for

  const SparseTable& table(int i) const { return *tables_[static_cast<size_t>(i)]->table; }
  // "table embedding: 1234 rows, 0.1 MiB"; a line each.
  std::vector<std::string> lines() const;

 private:
  struct Waiting {
    int trainer = 0;
    Message message;
  };
  struct Shrink {
    int64_t step = 0;
    std::optional<int64_t> age = {};  // instead of the settings' max_age
  };
  struct Served {
    std::unique_ptr<SparseTable> table;
    int64_t shrink_every = 0;                  // steps
    std::vector<Shrink> shrinks_due = {};      // they wait for the end of a cut
    std::optional<GeoRecorder> recorder = {};  // in geo
    std::vector<Waiting> pulls = {};
    std::vector<std::optional<Message>> pushes = {};  // by trainer
  };
  // Set by the thread of a write when it ends.
  struct WriteResult {
    static constexpr int kNobody = -1;  // waits for it: the trainer is lost
    int trainer = 0;
    std::promise<Json> promise = {};
    std::future<Json> json = promise.get_future();
  };
  struct Cut {
    std::vector<std::unique_ptr<TableCut>> tables;
  };

  Served& served(const Message& message);
  bool must_wait(const Served& served, const Message& message) const;
  void answer_pulls(Served& served, RowAnswers* answers);
  void answer_together(Served& served, RowAnswers* answers);
  Message answer(const Served& served, const Message& pull);
  Message changes(Served& served, int trainer, const Message& pull);
  void apply(Served& served, float learning_rate);
  void shrink(Served& served);
  void shrink_if_due(RowAnswers* answers);
  void command_shrink(const Json& command, RowAnswers* answers);
  void load(const std::string& folder);
  void begin_write(int trainer, const Json& command);
  bool cutting() const { return cut_ || result_; }
  bool apart() const { return mode_ != ServerMode::kSync; }

  const int server_, trainers_;
  const ServerMode mode_;
  std::vector<std::unique_ptr<Served>> tables_;
  uint64_t cuts_ = 0;
  std::vector<Message> commands_;  // trainer 0's, waiting for the previous snapshot
  std::shared_ptr<Cut> cut_;       // null: none, or it is being written
  Thread writer_;
  std::shared_ptr<WriteResult> result_;  // writer_ sets it
};

// Equal if names and settings of the tables are.
uint64_t hash_of(const std::vector<TableSettings>& tables);

}  // namespace fleet::ps
