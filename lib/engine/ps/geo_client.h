// A trainer of servers in mode geo: it updates its own parameters, and exchanges differences with
// the servers every k updates, without waiting for other trainers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ps/dense_client.h"
#include "ps/geo_tables.h"

namespace fleet::ps {

// An exchange, for each element of a parameter with the local value w, N trainers, and the servers'
// value P as received last, old:
//
//   delta = (w - old) / N     old += delta     the servers: P += delta     then
//   w += P - old              old = P
//
// (GeoCommunicator of Paddle, paddle/fluid/distributed/ps/service/communicator/communicator.cc.) So
// w - old, what the servers do not have yet, shrinks to (1 - 1/N) of itself. With one trainer
// it becomes 0, and w stays as local training has made it, bit by bit.
//
// Evaluations and checkpoints have the servers' values; resume() brings the local ones back. States
// of the update rule are each trainer's own; a checkpoint has trainer 0's.
//
// Rows of tables follow the same recurrence, see ps/geo_tables.h.
class GeoClient : public DenseClient {
 public:
  GeoClient(ServedModel model, Placement placement, const DenseClientOptions& options,
            std::vector<ServedTable> tables = {});

  bool apart() const override { return true; }
  void begin(Executor& executor, int64_t steps) override;
  // Differences that the lost trainer had not sent are lost; its states start from their first
  // values, and it has used no rows.
  TakenPlace take_place(Executor& executor, uint64_t shares) override;
  void feed_rows(Executor& executor, const Columns& columns, bool evaluation) override;
  void restore_merged_rows(std::vector<MergedRows> rows) override;
  void update(Executor& executor, int64_t step, double learning_rate) override;
  void settle(Executor& executor) override;
  void synchronize(Executor& executor, bool with_states) override;
  void resume(Executor& executor) override;
  const GeoTables& rows() const { return tables_; }

 private:
  using Values = std::map<std::string, std::vector<float>>;  // by parameter

  Values read(Executor& executor) const;
  void write(Executor& executor, const Values& values) const;
  void begin_here(Executor& executor);
  void exchange(Executor& executor);
  void push(Values deltas);
  void pull(Executor& executor);

  GeoTables tables_;
  Values old_;
  Values local_;       // while the executor has the servers' values
  int64_t since_ = 0;  // updates since the last exchange
  int64_t step_ = 0;   // the last one
  uint64_t sequence_ = 0;
};

}  // namespace fleet::ps
