// Trainers of a small model of clicks, with tables on servers of the same process, or as dense
// parameters there.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "exec/backend.h"
#include "ps/job_tables.h"
#include "strategy/server_mode.h"
#include "strategy/strategy_file.h"
#include "tests/engine/ps/inline_server.h"
#include "train/job.h"
#include "train/job_task.h"
#include "train/rank_state.h"
#include "train/served_job.h"
#include "train/session.h"

namespace fleet::ps {

inline constexpr double kClickRate = 0.3;  // learning_rate.base
inline constexpr int kClickBatch = 6, kClickSlots = 3, kClickLength = 2, kClickIds = 40;

inline constexpr char kWideDeep[] = R"("name": "wide_deep", "dense": false)";

// optimizer, tables, strategy: sections as JSON; tables "": dense parameters.
inline Job click_job(const std::string& optimizer, const std::string& tables,
                     const std::string& model = kWideDeep, const std::string& strategy = "{}") {
  const std::string text = R"({"task": "click", "model": {"ids": 40, "dim": 5, "hidden": [8],
      "embedding_init": 0, )" +
                           model + R"(},
      "data": {"source": "synthetic_clicks", "batch_size": 6, "slot_count": 3, "slot_ids": 13,
               "slot_length": 2, "ids": 40, "train": {"samples": 100}, "test": {"samples": 100}},
      "learning_rate": {"base": 0.3}, "strategy": )" +
                           strategy + R"(, "optimizer": )" + optimizer +
                           (tables.empty() ? "" : ", \"tables\": " + tables) + "}";
  return make_job(ConfigTree::from_json(text, "job.json"));
}

// A trainer's batch of a step; its ids overlap with those of others, and occur several times.
struct ClickBatch {
  std::vector<int64_t> ids;
  std::vector<float> label, ones = std::vector<float>(kClickBatch, 1);
  std::vector<int64_t> keys = std::vector<int64_t>(kClickBatch);

  ClickBatch(int64_t step, int trainer, int64_t id_offset = 0) {
    std::mt19937_64 random(static_cast<uint64_t>(step * 100 + trainer));
    for (int i = 0; i < kClickBatch * kClickSlots * kClickLength; ++i) {
      const bool none = i % kClickLength > 0 && random() % 3 == 0;
      // Trainers share the first half of the ids.
      const uint64_t most = kClickIds / 2 + static_cast<uint64_t>(trainer) * 4;
      ids.push_back(none ? -1 : static_cast<int64_t>(random() % most) + id_offset);
    }
    for (int i = 0; i < kClickBatch; ++i) label.push_back(random() % 3 == 0 ? 1 : 0);
  }
  std::span<const std::byte> column(const std::string& name) const {
    if (name == "ids") return std::as_bytes(std::span(ids));
    if (name == "label") return std::as_bytes(std::span(label));
    return {};
  }
};

class ClickTrainer {
 public:
  ClickTrainer(const Job& job, int rank, int world, int servers)
      : device_(choose_device("cpu", 0).device) {
    BuiltProgram built = build_program(
        job, {.columns = expected_columns(job), .rank = rank, .world = world, .servers = servers});
    training_ = built.training;
    geo_ = server_settings(strategy_from(job.strategy)).mode == ServerMode::kGeo;
    executor_ =
        std::make_unique<Executor>(plan_built(built, "cpu", device_.get()), *device_, nullptr);
    executor_->initialize(1);
  }

  Executor& executor() { return *executor_; }
  const Program& program() const { return executor_->program(); }
  // As StepRunner does.
  void train(ParameterExchange& servers, const ClickBatch& batch, int64_t step,
             double rate = kClickRate) {
    feed(servers, batch, /*evaluation=*/false, static_cast<float>(rate));
    servers.resume(*executor_);
    executor_->run({.step = step, .flags = geo_ ? 1u : 0u});  // local_update is the only flag
    const int64_t merged = program().sections()[program().find_section("optimize")].when.every;
    if ((step + 1) % merged != 0) return servers.merge_rows(*executor_);
    servers.update(*executor_, step, static_cast<float>(rate));
    RankSync(*executor_, step).run(step + 1);
  }
  // The logits.
  std::vector<float> evaluate(ParameterExchange& servers, const ClickBatch& batch) {
    feed(servers, batch, /*evaluation=*/true);
    executor_->run({.evaluate = true, .fetch = true});
    return executor_->values<float>(training_.evaluation_sums[0].var);
  }
  // Parameters and states, by name.
  std::map<std::string, std::vector<float>> saved() {
    std::map<std::string, std::vector<float>> all;
    for (VarId id = 0; id < program().var_count(); ++id) {
      const Var& var = program().var(id);
      if (is_saved(var) && var.dtype == DType::kFloat32)
        all[var.name] = executor_->values<float>(id);
    }
    return all;
  }

 private:
  void feed(ParameterExchange& servers, const ClickBatch& batch, bool evaluation, float rate = 0) {
    const float denominator = kClickBatch;
    for (const TrainingFeed& feed : training_.feeds) {
      if (feed.name == "ids") executor_->feed(feed.var, batch.ids);
      if (feed.name == "label") executor_->feed(feed.var, batch.label);
      if (feed.name == "weight") executor_->feed(feed.var, batch.ones);
      if (feed.name == "sample_key") executor_->feed(feed.var, batch.keys);
      if (feed.name == "sample_denominator") executor_->feed(feed.var, std::span(&denominator, 1));
      if (feed.name == "learning_rate") executor_->feed(feed.var, std::span(&rate, 1));
    }
    servers.feed_rows(
        *executor_, [&](const std::string& name) { return batch.column(name); }, evaluation);
  }

  std::unique_ptr<Device> device_;
  Training training_;
  bool geo_ = false;
  std::unique_ptr<Executor> executor_;
};

// All trainers and servers of a job.
class ClickRun {
 public:
  // table_deltas: checkpoint.table_deltas.
  ClickRun(const Job& job, int trainers, int servers, int64_t id_offset = 0,
           int64_t table_deltas = 0)
      : id_offset_(id_offset) {
    for (int t = 0; t < trainers; ++t) {
      all_.push_back(std::make_unique<ClickTrainer>(job, t, trainers, servers));
    }
    const Program& program = all_[0]->program();
    servers_ = std::make_unique<InlineServers>(program, servers, trainers, PlacementOptions(),
                                               /*shuffled=*/false, tables_of(job, program),
                                               server_settings(strategy_from(job.strategy)));
    servers_->table_deltas = table_deltas;
    for (int t = 0; t < trainers; ++t) {
      clients_.push_back(servers_->client(all_[static_cast<size_t>(t)]->program(), t));
    }
  }

  // checkpoint: a folder with tables; "": none.
  void begin(int64_t step = 0, const std::string& checkpoint = "") {
    each([&](int t) {
      if (!checkpoint.empty()) clients_[t]->resume_tables(checkpoint);
      clients_[t]->begin(all_[t]->executor(), step);
    });
  }
  std::function<double(int64_t step)> rate = [](int64_t) { return kClickRate; };
  void train(int64_t from, int64_t end) {
    each([&](int t) {
      for (int64_t step = from; step < end; ++step) {
        all_[t]->train(*clients_[t], ClickBatch(step, t, id_offset_), step, rate(step));
      }
    });
  }
  // Trainer 0 saves, while `during` runs on all of them.
  void save(const std::string& folder, const std::function<void()>& during = {}) {
    each([&](int t) { clients_[t]->cut_tables(); });
    write(folder, during);
  }
  // After a cut.
  void write(const std::string& folder, const std::function<void()>& during = {}) {
    std::atomic<bool> written{false};
    Thread other("save", [&] {
      const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> ends(
          &written, [](std::atomic<bool>* flag) { *flag = true; });
      clients_[0]->save_tables(folder);
    });
    if (during) during();
    while (!written) {
      for (const auto& server : servers_->all) server->tick();
      std::this_thread::yield();
    }
    other.join();
  }
  // The process of the trainer ends without a goodbye; another one takes its place. Returns its
  // first step.
  void lose(int t) { clients_[static_cast<size_t>(t)].reset(); }
  int64_t replace(int t, uint32_t incarnation = 1) {
    auto& client = clients_[static_cast<size_t>(t)];
    client = servers_->client(trainer(t).program(), t, incarnation);
    return client->take_place(trainer(t).executor(), 1).steps;
  }
  void settle() {
    each([&](int t) { clients_[t]->settle(all_[t]->executor()); });
  }
  ClickTrainer& trainer(int t) { return *all_[static_cast<size_t>(t)]; }
  DenseClient& client(int t) { return *clients_[static_cast<size_t>(t)]; }
  InlineServers& servers() { return *servers_; }
  // Parameters and states as trainer 0 would save them.
  std::map<std::string, std::vector<float>> saved() {
    each([&](int t) { clients_[t]->synchronize(all_[t]->executor(), true); });
    return all_[0]->saved();
  }
  // A row of a table, by its number.
  std::vector<float> row(int table, uint64_t id) {
    const int count = static_cast<int>(servers_->all.size());
    const SparseTable& of = servers_->all[static_cast<size_t>(server_of(id, count))]->table(table);
    std::vector<float> row(static_cast<size_t>(of.settings().dim));
    of.lookup(std::span(&id, 1), row);
    return row;
  }
  int64_t rows(int table) {
    int64_t sum = 0;
    for (const auto& server : servers_->all) sum += server->table(table).counts().rows;
    return sum;
  }

  void each(const std::function<void(int trainer)>& body) {
    std::vector<Thread> threads;
    for (size_t t = 1; t < all_.size(); ++t) {
      threads.emplace_back("trainer", [&, t] { body(static_cast<int>(t)); });
    }
    body(0);
    for (Thread& thread : threads) thread.join();
  }

 private:
  const int64_t id_offset_;
  std::vector<std::unique_ptr<ClickTrainer>> all_;
  std::unique_ptr<InlineServers> servers_;
  std::vector<std::unique_ptr<DenseClient>> clients_;
};

}  // namespace fleet::ps
