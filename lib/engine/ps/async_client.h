// A trainer of asynchronous servers: its steps run while a thread of its own pushes their gradients
// and receives parameters.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "ps/dense_client.h"
#include "ps/send_queue.h"

namespace fleet::ps {

// update() puts a copy of the gradients into a queue of ServerSettings::queue_size, and waits while
// it is full. The thread adds up to `merged_pushes` of them, pushes the sum, and receives the
// parameters after it; with `independent_pulls` only after more than `pushes_before_pull` pushes.
// At its end, update() writes the newest received parameters to the executor. With max_staleness s
// it first waits for those with all trainers' first step + 1 - s steps. So with s = 0, one
// trainer trains as without servers.
//
// feed_rows() pulls rows itself, whatever the thread does: servers answer at once. Gradients of
// rows pass the queue with those of the other parameters.
class AsyncClient : public DenseClient {
 public:
  AsyncClient(ServedModel model, Placement placement, const DenseClientOptions& options,
              std::vector<ServedTable> tables = {});
  ~AsyncClient() override;

  bool apart() const override { return true; }
  void begin(Executor& executor, int64_t steps) override;
  TakenPlace take_place(Executor& executor, uint64_t shares) override;
  void update(Executor& executor, int64_t step, double learning_rate) override;
  void on_wait(std::function<void()> call) override { on_wait_ = std::move(call); }
  void settle(Executor& executor) override;
  void meet() override;
  void synchronize(Executor& executor, bool with_states) override;
  void finish() override;

 private:
  class Held;
  struct Received {
    int64_t version = -1;                // steps of the slowest trainer that they include
    std::vector<Message> messages = {};  // kValues, by server; empty: written
  };

  PendingPush packed(Executor& executor, const PushHead& head, int64_t step);
  void wait_for(int64_t version);
  int64_t write_newest(Executor& executor);  // Received::version of the values in use
  void rethrow_failure();
  void end_thread();
  // On the thread.
  void communicate();
  void push(PendingPush pending);
  bool should_pull();
  void pull();

  std::vector<std::vector<BlockSegment>> segments_;  // gradients, by server
  std::function<void()> on_wait_;
  SendQueue queue_;
  uint64_t sequence_ = 0;  // on the thread, as the next one
  int unreceived_ = 0;     // pushes since the last pull
  Mutex mutex_;
  CondVar changed_;
  Received newest_ FLEET_GUARDED_BY(mutex_);
  int64_t needed_ FLEET_GUARDED_BY(mutex_) = -1;  // the version that the trainer waits for
  std::exception_ptr failure_ FLEET_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace fleet::ps
