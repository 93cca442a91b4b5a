// A trainer's connections to the servers of its dense blocks, in synchronous mode; what the other
// modes share is protected. dense_client_states.cc has what it shares outside of steps.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "exec/parameter_exchange.h"
#include "optim/check_finite.h"
#include "ps/connection.h"
#include "ps/dense_payload.h"
#include "ps/server_mailboxes.h"
#include "ps/table_client.h"
#include "ps/trainer_counters.h"
#include "strategy/server_settings.h"
#include "tensor/host.h"

namespace fleet::ps {

struct DenseClientOptions {
  int trainer = 0, trainers = 1;
  uint32_t incarnation = 0;
  std::vector<std::string> servers;  // addresses
  ServerSettings settings = {};
  std::chrono::milliseconds timeout{31 * 60 * 1000};
  std::vector<TableSettings> tables = {};  // for served_tables() of the Program
  int64_t table_deltas = 0;                // TableClientOptions::deltas
  // Host memory for copies of gradients.
  std::function<Buffer(size_t bytes)> allocate = [](size_t bytes) {
    return HostDevice().allocate(bytes);
  };
  // Connects to a server.
  std::function<std::shared_ptr<Connection>(int server, ConnectionHandler& handler)> connect;
};

class DenseClient : public ParameterExchange {
 public:
  // Connects to all servers and compares the model with theirs. tables: the Program's.
  DenseClient(ServedModel model, Placement placement, const DenseClientOptions& options,
              std::vector<ServedTable> tables = {});
  ~DenseClient() override;

  void begin(Executor& executor, int64_t steps) override;
  TakenPlace take_place(Executor& executor, uint64_t shares) override;
  uint64_t shares() const override { return ordinal_; }
  void update(Executor& executor, int64_t step, double learning_rate) override;
  void synchronize(Executor& executor, bool with_states) override;
  void feed_rows(Executor& executor, const Columns& columns, bool evaluation) override;
  void merge_rows(Executor& executor) override;
  std::vector<MergedRows> merged_rows() const override { return trained_->merged_rows(); }
  void restore_merged_rows(std::vector<MergedRows> rows) override;
  void resume_tables(const std::string& folder) override;
  void cut_tables() override;
  std::string save_tables(const std::string& folder) override;
  bool shrink_tables(int64_t age) override;
  void finish() override;
  std::string text() const override;
  void add_to(EventLine* line) override { counters_.add_to(line); }

 protected:
  using Segments = std::vector<BlockSegment>;

  int servers() const { return placement_.servers; }
  int trainers_of_job() const { return options_.trainers; }
  bool leads() const { return options_.trainer == 0; }
  TableClient& tables() { return tables_; }
  TableClientOptions table_options();
  void say_missing();
  const ServedModel& model() const { return model_; }
  const ServerSettings& settings() const { return options_.settings; }
  const Segments& gradients_of(int server) const { return gradients_[server]; }
  const Segments& values_of(int server) const { return values_[server]; }
  // Lets every call that waits for a server end. The servers have then received everything, or it
  // is lost: the executor, whose memory may be being sent, can be destroyed.
  void end_connections();
  void send(int server, Message message);
  Message wait(int server, MessageType type);
  // By the thread of training, in a step.
  Message wait(int server, MessageType type, TrainerCounters::Wait::Total total);
  TrainerCounters& counters() { return counters_; }
  void land(Executor& executor, const Segments& segments, std::span<const std::byte> data);
  // Trainer 0 gives its kept variables to all, and all receive these sections of the servers.
  void share(Executor& executor, uint32_t sections);
  // A version below 0: any. Returns the lowest one.
  int64_t pull_states(Executor& executor, uint64_t ordinal, uint32_t sections, int64_t of_version);
  uint32_t present(uint32_t sections) const;  // without those that no server has
  // The gradients after a step; their memory stays unchanged until the next one.
  void stage_gradients(Executor& executor);
  Bytes gradient_bytes(Executor& executor, const BlockSegment& segment) const;
  PushHead check(Executor& executor, double learning_rate) const;
  // Sets the tables with the rows and gradients of training steps; tables() at first. They must
  // outlive the other calls.
  void set_trained(TrainerTables& tables) { trained_ = &tables; }
  void set_steps(int64_t steps) { version_ = steps; }  // trained so far
  void record_outcome(Executor& executor, const PushHead& own, const ValuesHead& all);

 private:
  // Whole variables in plain layout, where blocks are put together or taken from.
  using Staging = std::map<std::string, std::vector<std::byte>>;
  // The same, in memory that the device copies to without waiting.
  struct Staged {
    Buffer memory;
    std::span<std::byte> data(size_t bytes) const {
      return {static_cast<std::byte*>(memory.data()), bytes};
    }
  };

  void say_hello();
  void send_initial(Executor& executor, uint32_t sections);
  std::span<const std::byte> host_bytes(Executor& executor, const std::string& variable) const;
  bool is_finite(Executor& executor, const std::string& variable) const;
  void push(Executor& executor, const PushHead& head, int64_t step);
  void exchange_norms(int64_t step);
  Bytes copied_bytes(Executor& executor, const BlockSegment& segment,
                     std::map<std::string, Bytes>& copies) const;

  const ServedModel model_;
  const Placement placement_;
  const DenseClientOptions options_;
  TrainerCounters counters_;
  ServerMailboxes mailboxes_;
  std::vector<std::shared_ptr<Connection>> connections_;  // unchanged after the constructor
  std::atomic<bool> ended_{false};
  TableClient tables_;
  TrainerTables* trained_ = &tables_;
  std::vector<Segments> gradients_, values_;  // by server
  const std::vector<NormParts> norm_parts_;
  Staging staging_;                                  // values
  std::map<std::string, Staged> gradients_on_host_;  // what the host cannot read in plain layout
  std::map<std::string, size_t> landed_;             // bytes of values in staging_
  std::vector<int64_t> answered_;  // HelloHead: header.version of the answers, by server
  uint64_t sequence_ = 0, ordinal_ = 0;
  int64_t version_ = 0;
  FiniteRecord record_;
  int64_t skipped_ = 0;
};

// For the mode of the settings. tables: the Program's.
std::unique_ptr<DenseClient> make_dense_client(ServedModel model, Placement placement,
                                               const DenseClientOptions& options,
                                               std::vector<ServedTable> tables = {});

}  // namespace fleet::ps
