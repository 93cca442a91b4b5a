// Servers and connections in one process without threads of their own: a trainer's send() runs the
// server's logic.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "base/mutex.h"
#include "ps/block_store.h"
#include "ps/connection.h"
#include "ps/dense_client.h"
#include "ps/dense_server.h"
#include "ps/update_program.h"
#include "tests/engine/ps/update_job.h"

namespace fleet::ps {

// As a transport delivers it: one part, which owns its memory.
inline Message delivered(const Message& message) {
  const auto payload = std::make_shared<std::vector<std::byte>>();
  for (const Bytes& part : message.parts) {
    payload->insert(payload->end(), part.data.begin(), part.data.end());
  }
  return {.header = message.header, .parts = {{.data = *payload, .owner = payload}}};
}

// A server of a job, with odd block sizes.
class InlineServer {
 public:
  // shuffle: hold the pushes of a step until all are there, and deliver them in a random order.
  InlineServer(const Program& trainer, int server, int servers, int trainers,
               const PlacementOptions& placement, std::optional<uint64_t> shuffle,
               const std::vector<TableSettings>& tables = {}, ServerMode mode = ServerMode::kSync)
      : model_(served_model(trainer)),
        placement_(place(model_, servers, placement)),
        device_(choose_device("cpu", 0).device),
        store_(make_block_store(server_program(trainer, model_, placement_, server), model_,
                                placement_, server, *device_)),
        tables_(tables, server, servers, trainers, mode),
        trainers_(trainers),
        handlers_(kProcesses * trainers),
        held_(trainers) {
    if (shuffle) random_.emplace(*shuffle);
    const uint64_t blocks = hash_of(placement_, model_.placed_parameters(), model_.placed_vars());
    server_.emplace(DenseServerOptions{.own = {.trainers = trainers,
                                               .server = server,
                                               .servers = servers,
                                               .mode = static_cast<uint32_t>(mode),
                                               .parameters = model_.hash_of_parameters(),
                                               .rule = model_.hash_of_rule(),
                                               .placement = blocks,
                                               .tables = hash_of(tables)},
                                       .tables = &tables_,
                                       .timeout = 1000},
                    *store_, 0);
  }

  // incarnation: below kProcesses.
  std::shared_ptr<Connection> connect(int trainer, ConnectionHandler& handler,
                                      uint32_t incarnation = 0) {
    const MutexLock lock(mutex_);
    const int connection = trainer + static_cast<int>(incarnation) * trainers_;
    handlers_[connection] = &handler;
    return std::make_shared<Link>(*this, connection);
  }
  const DenseServer& logic() const { return *server_; }
  const SparseTable& table(int i) const { return tables_.table(i); }
  // Lets time pass; whether a snapshot is still being written, or was asked for.
  bool tick() {
    const MutexLock lock(mutex_);
    act(server_->step(TimePassed(), 0));
    return tables_.works();
  }
  // Rows in pushes and values of tables so far.
  int64_t pushed_rows() const { return pushed_rows_; }
  int64_t sent_rows() const { return sent_rows_; }
  // The time, in seconds from 0.
  void pass_until(double now) {
    const MutexLock lock(mutex_);
    act(server_->step(TimePassed(), now));
  }
  // Delivers each push twice, as if its acceptance had been lost, and again before the next one.
  void repeat_pushes() { repeats_ = true; }
  // It receives nothing more, as if it were suspended.
  void fall_silent() { silent_ = true; }
  // Of all its blocks.
  std::vector<float> values() const {
    std::vector<float> all;
    bool padding = false;
    for (const Bytes& part : store_->read(kValueSection)) {
      if (std::exchange(padding, !padding && part.data.size() % 8 != 0)) continue;
      const auto* first = reinterpret_cast<const float*>(part.data.data());
      all.insert(all.end(), first, first + part.data.size() / sizeof(float));
    }
    return all;
  }

 private:
  class Link : public Connection {
   public:
    Link(InlineServer& server, int trainer) : server_(server), trainer_(trainer) {}
    void send(Message message) override { server_.send(trainer_, delivered(message)); }
    bool wait_until_unsent(size_t, std::chrono::milliseconds) override { return true; }
    void close() override { server_.close(trainer_); }
    bool disconnect(std::chrono::milliseconds) override {
      close();
      return true;
    }
    std::string peer() const override { return "trainer"; }
    std::string transport() const override { return "inline"; }
    int64_t sent() const override { return 0; }
    int64_t received() const override { return 0; }

   private:
    InlineServer& server_;
    const int trainer_;
  };

  void send(int trainer, Message message) {
    const MutexLock lock(mutex_);
    if (silent_) return;
    const MessageType type = message.header.type;
    const bool of_step = type == MessageType::kPush || type == MessageType::kPull;
    if (message.header.table > 0 && type == MessageType::kPush) {
      pushed_rows_ += message.header.count;
    }
    if (repeats_ && type == MessageType::kPush) {
      std::optional<Message>& earlier = earlier_[{trainer, message.header.table}];
      if (earlier) deliver(trainer, delivered(*earlier));
      earlier = delivered(message);
      deliver(trainer, delivered(message));
    }
    if (!random_ || !of_step) return deliver(trainer, std::move(message));
    held_[trainer].push_back(std::move(message));
    const auto complete = [](const auto& messages) { return messages.size() == 2; };
    if (!std::ranges::all_of(held_, complete)) return;
    std::vector<int> order(held_.size());
    for (size_t t = 0; t < order.size(); ++t) order[t] = static_cast<int>(t);
    std::ranges::shuffle(order, *random_);
    for (const int t : order) {
      for (Message& one : held_[t]) deliver(t, std::move(one));
      held_[t].clear();
    }
  }

  void deliver(int trainer, Message message) FLEET_REQUIRES(mutex_) {
    act(server_->step(Received{trainer, "10.0.0." + std::to_string(trainer), std::move(message)},
                      0));
  }

  void close(int trainer) {
    const MutexLock lock(mutex_);
    ConnectionHandler* const handler = std::exchange(handlers_[trainer], nullptr);
    if (!handler) return;
    act(server_->step(Closed{trainer, ""}, 0));
    handler->closed(nullptr, nullptr);
  }

  void act(const std::vector<ServerAction>& actions) FLEET_REQUIRES(mutex_) {
    for (const ServerAction& action : actions) {
      ConnectionHandler*& handler = handlers_[action.connection];
      if (!handler) continue;
      if (action.message && action.message->header.table > 0) {
        sent_rows_ += action.message->header.count;
      }
      if (action.message) handler->received(nullptr, delivered(*action.message));
      if (!action.close) continue;
      handler->closed(nullptr, nullptr);
      handler = nullptr;
    }
  }

  static constexpr int kProcesses = 3;  // of a trainer

  const ServedModel model_;
  const Placement placement_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<BlockStore> store_;
  TableHost tables_;
  Mutex mutex_;
  std::optional<DenseServer> server_;
  const int trainers_;
  std::vector<ConnectionHandler*> handlers_;  // by connection: those of trainers, then of others
  std::vector<std::vector<Message>> held_;
  std::optional<std::mt19937> random_;
  bool repeats_ = false;
  std::atomic<bool> silent_ = false;
  std::map<std::pair<int, int>, std::optional<Message>> earlier_;  // pushes, by trainer and table
  std::atomic<int64_t> pushed_rows_{0}, sent_rows_{0};
};

// All servers of a job.
struct InlineServers {
  std::vector<std::unique_ptr<InlineServer>> all;
  ServerSettings settings;   // of clients
  int64_t table_deltas = 0;  // of clients

  InlineServers(const Program& trainer, int servers, int trainers,
                const PlacementOptions& placement = {.min_elements = 5, .alignment = 1},
                bool shuffled = false, const std::vector<TableSettings>& tables = {},
                const ServerSettings& mode = {})
      : settings(mode), placement_(placement), trainers_(trainers), tables_(tables) {
    for (int s = 0; s < servers; ++s) {
      const auto seed = shuffled ? std::optional<uint64_t>(s) : std::nullopt;
      all.push_back(std::make_unique<InlineServer>(trainer, s, servers, trainers, placement, seed,
                                                   tables, mode.mode));
    }
  }

  std::unique_ptr<DenseClient> client(
      const Program& program, int trainer, uint32_t incarnation = 0,
      std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    const ServedModel model = served_model(program);
    DenseClientOptions options{.trainer = trainer,
                               .trainers = trainers_,
                               .incarnation = incarnation,
                               .servers = {},
                               .settings = settings,
                               .timeout = timeout,
                               .tables = tables_,
                               .table_deltas = table_deltas,
                               .connect = [=, this](int server, ConnectionHandler& handler) {
                                 return all[server]->connect(trainer, handler, incarnation);
                               }};
    for (size_t s = 0; s < all.size(); ++s) {
      options.servers.push_back("10.0.1." + std::to_string(s) + ":6070");
    }
    return make_dense_client(model, place(model, static_cast<int>(all.size()), placement_), options,
                             served_tables(program));
  }

 private:
  const PlacementOptions placement_;
  const int trainers_;
  const std::vector<TableSettings> tables_;
};

}  // namespace fleet::ps
