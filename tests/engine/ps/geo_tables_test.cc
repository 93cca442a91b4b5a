// Tables in mode geo.
#include "ps/geo_tables.h"

#include <gmock/gmock.h>

#include <set>

#include "ps/geo_client.h"
#include "tests/engine/ps/click_trainers.h"
#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

constexpr char kGeoSgd[] = R"({"name": "sgd"})";

std::string table_with(const std::string& rule) {
  return R"({"embedding": {"rule": {"name": ")" + rule + R"(", "learning_rate": 0.3},
             "initializer": {"name": "normal", "deviation": 0.1}}})";
}
Job geo_job(const std::string& rule, int steps) {
  return click_job(kGeoSgd, table_with(rule), kWideDeep,
                   R"({"a_sync_configs": {"k_steps": )" + std::to_string(steps) + "}}");
}
const GeoTables& rows_of(ClickRun& run, int trainer) {
  return dynamic_cast<GeoClient&>(run.client(trainer)).rows();
}
void train_one(ClickRun& run, int t, int64_t step) {
  run.trainer(t).train(run.client(t), ClickBatch(step, t), step);
}

class GeoTableRule : public ::testing::TestWithParam<const char*> {};

TEST_P(GeoTableRule, OneTrainer_IsLocalTraining) {
  ClickRun sync(click_job(kGeoSgd, table_with(GetParam())), 1, 1),
      geo(geo_job(GetParam(), 3), 1, 2);
  for (ClickRun* run : {&sync, &geo}) {
    run->begin();
    run->train(0, 7);
  }
  int used = 0;
  for (uint64_t id = 0; id < kClickIds; ++id) {
    const std::vector<float> row = rows_of(geo, 0).row(0, id);
    if (row.empty()) continue;
    ++used;
    EXPECT_EQ(row, sync.row(0, id)) << id;
  }
  EXPECT_EQ(used, sync.rows(0));
  EXPECT_EQ(geo.trainer(0).saved(), sync.trainer(0).saved());
}

INSTANTIATE_TEST_SUITE_P(Rules, GeoTableRule,
                         ::testing::Values("naive", "adagrad", "std_adagrad", "adam"));

// The recurrence of one trainer, from the gradients that its steps had.
class GeoTableReference {
 public:
  using Rows = std::map<uint64_t, std::vector<float>>;
  // What the servers have; ids that were pushed, by the trainer that has not received them.
  struct Servers {
    Rows rows, sum_of_differences;
    std::vector<std::set<uint64_t>> unseen;
  };

  void step(ClickTrainer& trainer, const ClickBatch& batch, const Servers& servers) {
    const ServedTable table = served_tables(trainer.program()).at(0);
    BatchIds ids;
    ids.set(batch.column("ids"), "embedding");
    const std::vector<float> gradient = trainer.executor().values<float>(table.gradient);
    const auto dim = static_cast<size_t>(table.dim);
    for (size_t i = 0; i < ids.ids().size(); ++i) {
      const uint64_t id = ids.ids()[i];
      if (!w.contains(id)) w[id] = old[id] = servers.rows.at(id);
      rule_->update({.values = w[id].data(),
                     .state = nullptr,
                     .gradient = &gradient[i * dim],
                     .dim = static_cast<int>(dim),
                     .shows = 1,
                     .learning_rate = 0.3f});
      touched_.insert(id);
    }
  }
  void exchange(int trainer, Servers* servers) {
    before.clear();
    for (const uint64_t id : touched_) {
      for (size_t j = 0; j < w[id].size(); ++j) {
        before[id].push_back(w[id][j] - old[id][j]);
        const float difference =
            (w[id][j] - old[id][j]) / static_cast<float>(servers->unseen.size());
        old[id][j] += difference;
        servers->rows[id][j] += difference;
        servers->sum_of_differences[id].resize(w[id].size());
        servers->sum_of_differences[id][j] += difference;
      }
      for (auto& unseen : servers->unseen) unseen.insert(id);
    }
    touched_.clear();
    for (const uint64_t id : std::exchange(servers->unseen[static_cast<size_t>(trainer)], {})) {
      if (!w.contains(id)) continue;
      for (size_t j = 0; j < w[id].size(); ++j) {
        w[id][j] += servers->rows[id][j] - old[id][j];
        old[id][j] = servers->rows[id][j];
      }
    }
  }

  Rows w, old, before;  // before: w - old before the last exchange

 private:
  std::set<uint64_t> touched_;
  std::unique_ptr<TableRule> rule_ = make_table_rule(
      some_settings("'dim': 5, 'rule': {'name': 'naive', 'learning_rate': 0.3}").rule);
};

TEST(GeoTables, ThreeTrainers_FollowTheRecurrence) {
  constexpr int kTrainers = 3, kSteps = 8, kEvery = 2;
  ClickRun run(geo_job("naive", kEvery), kTrainers, 2);
  run.begin();
  GeoTableReference::Servers servers{
      .rows = {}, .sum_of_differences = {}, .unseen = std::vector<std::set<uint64_t>>(kTrainers)};
  for (uint64_t id = 0; id < kClickIds; ++id) servers.rows[id] = run.row(0, id);
  const GeoTableReference::Rows start = servers.rows;
  std::vector<GeoTableReference> references(kTrainers);
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int t = kTrainers - 1; t >= 0; --t) {
      GeoTableReference& reference = references[static_cast<size_t>(t)];
      train_one(run, t, step);
      reference.step(run.trainer(t), ClickBatch(step, t), servers);
      if ((step + 1) % kEvery == 0) reference.exchange(t, &servers);
      for (uint64_t id = 0; id < kClickIds; ++id) {
        ASSERT_EQ(rows_of(run, t).row(0, id), reference.w[id]) << id << " in step " << step;
        ASSERT_EQ(rows_of(run, t).old(0, id), reference.old[id]) << id << " in step " << step;
        if (reference.w[id].empty()) reference.w.erase(id), reference.old.erase(id);
      }
      if ((step + 1) % kEvery != 0) continue;
      for (const auto& [id, before] : reference.before) {  // the residual
        for (size_t j = 0; j < before.size(); ++j) {
          EXPECT_NEAR(reference.w[id][j] - reference.old[id][j], before[j] * (1 - 1.f / kTrainers),
                      1e-5f);
        }
      }
    }
  }
  int changed = 0;
  for (uint64_t id = 0; id < kClickIds; ++id) {
    EXPECT_EQ(run.row(0, id), servers.rows[id]) << id;
    std::vector<float> sum = servers.sum_of_differences[id];
    sum.resize(5);
    for (size_t j = 0; j < 5; ++j) {
      EXPECT_NEAR(servers.rows[id][j], start.at(id)[j] + sum[j], 1e-5f);
    }
    changed += servers.rows[id] != start.at(id);
  }
  EXPECT_GT(changed, kClickIds / 3);
}

std::set<int64_t> ids_of_steps(int trainer, int64_t from, int64_t end) {
  std::set<int64_t> ids;
  for (int64_t step = from; step < end; ++step) {
    const ClickBatch batch(step, trainer);
    for (const int64_t id : batch.ids) {
      if (id >= 0) ids.insert(id);
    }
  }
  return ids;
}

TEST(GeoTables, Traffic_FollowsTheIdsOfTheSteps) {
  ClickRun run(geo_job("naive", 4), 2, 1);
  run.begin();
  const InlineServer& server = *run.servers().all[0];
  const std::set<int64_t> first = ids_of_steps(0, 0, 4), second = ids_of_steps(1, 0, 4);
  for (int64_t step = 0; step < 4; ++step) train_one(run, 0, step);
  EXPECT_EQ(server.pushed_rows(), std::ssize(first));
  // New rows, and those of the exchange: each once.
  EXPECT_EQ(server.sent_rows(), 2 * std::ssize(first));
  for (int64_t step = 0; step < 4; ++step) train_one(run, 1, step);
  EXPECT_EQ(server.pushed_rows(), std::ssize(first) + std::ssize(second));
  std::set<int64_t> any = first;
  any.insert(second.begin(), second.end());
  EXPECT_EQ(server.sent_rows(), 2 * std::ssize(first) + std::ssize(second) + std::ssize(any));
  // Without steps, nothing is left to send.
  run.client(0).settle(run.trainer(0).executor());
  EXPECT_EQ(server.pushed_rows(), std::ssize(first) + std::ssize(second));
}

TEST(GeoTables, Evaluation_HasTheServersRows) {
  ClickRun run(geo_job("naive", 2), 2, 2);
  run.begin();
  for (int64_t step = 0; step < 4; ++step) {
    for (int t = 0; t < 2; ++t) train_one(run, t, step);
  }
  std::vector<std::vector<float>> logits;
  for (int t = 0; t < 2; ++t) run.client(t).settle(run.trainer(t).executor());
  for (int t = 0; t < 2; ++t) {
    run.client(t).synchronize(run.trainer(t).executor(), false);
    logits.push_back(run.trainer(t).evaluate(run.client(t), ClickBatch(9, 0)));
  }
  EXPECT_EQ(logits[0], logits[1]);
  const std::vector<float> own = rows_of(run, 0).row(0, 1);
  train_one(run, 0, 4);
  EXPECT_FALSE(own.empty());
  EXPECT_NE(own, run.row(0, 1));  // each trainer has its own part in its rows
}

TEST(GeoTables, RemovedRow_BeginsAgainWithTheNextDifference) {
  TableHost host({some_settings("'dim': 1, 'initializer': {'name': 'constant', 'value': 3}, "
                                "'shrink': {'every_steps': 1, 'age': 1}")},
                 0, 1, 1, ServerMode::kGeo);
  const auto push = [&](uint64_t sequence) {
    host.push(0, delivered(push_message({.ids = {7}, .shows = {1}, .clicks = {0}, .values = {0.5}},
                                        1, sequence, 0)));
    host.apply_push(0, false, 0.3f);
  };
  push(1);
  EXPECT_EQ(looked_up(host.table(0), {7}), std::vector<float>{3.5});
  host.advance(0, 1);
  EXPECT_EQ(host.table(0).counts().rows, 0);
  push(2);
  EXPECT_EQ(looked_up(host.table(0), {7}), std::vector<float>{3.5});
}

TEST(GeoTables, MoreRowsThanMemory_EndTheTrainerByName) {
  ClickTrainer trainer(geo_job("naive", 2), 0, 1, 1);
  const std::vector<ServedTable> tables = served_tables(trainer.program());
  const std::vector<TableSettings> settings = tables_of(geo_job("naive", 2), trainer.program());
  std::vector<Message> asked;
  const TableClientOptions options{
      .send = [&](int, Message message) { asked.push_back(std::move(message)); },
      .wait =
          [&](int, MessageType) {
            const MessageHeader header = std::exchange(asked, {}).at(0).header;
            return delivered({.header = {.type = MessageType::kValues,
                                         .table = header.table,
                                         .count = header.count},
                              .parts = {bytes_of_head(RowsHead()),
                                        bytes_of_values(std::vector<float>(header.count * 5))}});
          }};
  const ClickBatch batch(0, 0);
  const auto feed = [&](size_t available) {
    GeoTables rows(tables, settings, options, 1,
                   {.available = [available] { return available; }, .step = 1000});
    rows.feed_rows(trainer.executor(), [&](const std::string& name) { return batch.column(name); });
  };
  EXPECT_NO_THROW(feed(1000));
  EXPECT_NO_THROW(feed(0));  // unknown
  EXPECT_THAT(thrown_by([&] { feed(999); }), IsError(ErrorCode::kNoMemory, "tables.embedding"));
}

TEST(GeoRecorder, Take_GivesWhatAnyonePushedSinceTheLastOne) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  GeoRecorder recorder(3);
  recorder.pushed(std::vector<uint64_t>{5, 2});
  EXPECT_THAT(recorder.take(0), ElementsAre(2, 5));
  recorder.pushed(std::vector<uint64_t>{9, 5});
  EXPECT_THAT(recorder.take(0), ElementsAre(5, 9));
  EXPECT_THAT(recorder.take(1), ElementsAre(2, 5, 9));
  EXPECT_THAT(recorder.take(1), IsEmpty());
  recorder.leave(2);
  EXPECT_THAT(recorder.take(2), IsEmpty());
}

}  // namespace
}  // namespace fleet::ps
