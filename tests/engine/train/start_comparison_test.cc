// Ranks that would train differently are refused before they train.
#include "train/start_comparison.h"

#include <gmock/gmock.h>

#include <functional>
#include <memory>

#include "base/error.h"
#include "data/pipeline.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Counts what ranks ask of it.
class CountingStore : public Store {
 public:
  void set(const std::string& key, std::string_view value) override {
    ++calls, bytes += value.size();
    store_->set(key, value);
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    const std::string value = store_->get(key, timeout);
    ++calls, bytes += value.size();
    return value;
  }
  int64_t add(const std::string& key, int64_t amount) override {
    ++calls;
    return store_->add(key, amount);
  }
  size_t calls = 0, bytes = 0;

 private:
  const std::shared_ptr<Store> store_ = make_memory_store();
};

struct Outcome {
  std::vector<std::string> failures;  // by rank; "": none
  std::vector<ErrorCode> codes;
};

// All ranks come, then all wait: one thread is enough.
Outcome compare(int world, Store& store,
                const std::function<std::vector<ComparedItem>(int rank)>& items) {
  std::vector<std::unique_ptr<StartComparison>> ranks;
  for (int rank = 0; rank < world; ++rank) {
    ranks.push_back(std::make_unique<StartComparison>(items(rank), "job", JobRank{rank, world},
                                                      store, std::chrono::milliseconds(100)));
  }
  Outcome outcome{std::vector<std::string>(world), std::vector<ErrorCode>(world)};
  for (int rank = 0; rank < world; ++rank) {
    try {
      ranks[rank]->wait();
    } catch (const Error& error) {
      outcome.failures[rank] = error.failure();
      outcome.codes[rank] = error.code();
    }
  }
  return outcome;
}

Job job_with(const std::vector<std::string>& overrides) {
  ConfigTree tree = ConfigTree::from_json(
      R"({"model": {"name": "mlp"}, "data": {"source": "synthetic", "batch_size": 8}})",
      "job.json");
  apply_overrides(tree, overrides);
  return make_job(tree);
}

std::vector<ComparedItem> items_with(const std::vector<std::string>& overrides) {
  return compared_items_of_job(job_with(overrides), "cpu");
}

TEST(StartComparisonTest, AThousandAlikeRanks_AskTheStoreFiveTimesEach) {
  CountingStore store;
  const auto items = items_with({});
  const Outcome outcome = compare(1000, store, [&](int) { return items; });
  EXPECT_EQ(std::count(outcome.failures.begin(), outcome.failures.end(), ""), 1000);
  EXPECT_LE(store.calls, 4 * 1000u + 3);
  EXPECT_LE(store.bytes, 100 * 1000u);
}

TEST(StartComparisonTest, OneOfAThousand_IsNamedByKeyAndRank) {
  CountingStore store;
  const auto usual = items_with({}), odd = items_with({"data.batch_size=16", "train.max_steps=7"});
  const Outcome outcome = compare(1000, store, [&](int rank) { return rank == 700 ? odd : usual; });
  EXPECT_EQ(outcome.codes[700], ErrorCode::kUsage);
  EXPECT_EQ(outcome.codes[3], ErrorCode::kPeerLost);
  for (const int rank : {700, 3}) {
    EXPECT_EQ(outcome.failures[rank],
              "rank 700 differs from ranks 0, 1, 2, 3, 4, 5, 6, 7 and 991 more: data.batch_size is "
              "16 (--set), not 8 (job.json), train.max_steps is 7 (--set), not 0 (default)");
  }
  EXPECT_LE(store.calls, 6 * 1000u);
}

TEST(StartComparisonTest, TwoRanks_AreBothRefused) {
  CountingStore store;
  const Outcome outcome = compare(
      2, store, [&](int rank) { return items_with({"train.seed=" + std::to_string(rank + 1)}); });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome.codes[rank], ErrorCode::kUsage);
    EXPECT_THAT(outcome.failures[rank], AllOf(HasSubstr("rank 1 differs from rank 0"),
                                              HasSubstr("train.seed is 2 (--set), not 1")));
  }
}

TEST(StartComparisonTest, WhatIsOfTheMachine_MayDiffer) {
  CountingStore store;
  const Outcome outcome = compare(2, store, [&](int rank) {
    const std::string n = std::to_string(rank + 1);
    return items_with({"data.root=/disk" + n, "data.threads=" + n, "train.output=out" + n,
                       "data.prefetch=" + n, "comm.timeout=" + n});
  });
  EXPECT_EQ(outcome.failures, std::vector<std::string>(2));
}

// Nodes may keep the same data in different places; their content is compared instead.
TEST(StartComparisonTest, PathsOfAllSources_MayDiffer) {
  int paths = 0;
  for (const std::string& source : data::sources().names()) {
    const Schema schema = data::data_schema(source);
    for (const ConfigKey& key : schema.keys()) {
      if (!key.is_path) continue;
      ++paths;
      const auto items = [&](const std::string& value) {
        ConfigTree tree = ConfigTree::from_json(
            R"({"task": "image_classification", "model": {"name": "mlp"},
                "data": {"source": ")" +
                source + "\"}}",
            "job.json");
        apply_overrides(tree, {"data." + key.path + "=" + value});
        return compared_items_of_job(make_job(tree), "cpu");
      };
      CountingStore store;
      const Outcome outcome =
          compare(2, store, [&](int rank) { return items(rank == 0 ? "/a/1" : "/b/2"); });
      EXPECT_EQ(outcome.failures, std::vector<std::string>(2)) << source << ": " << key.path;
    }
  }
  EXPECT_GE(paths, 20);
}

TEST(StartComparisonTest, DeviceDataAndWeights_AreCompared) {
  const auto differs = [](const std::vector<ComparedItem>& a, const std::vector<ComparedItem>& b) {
    CountingStore store;
    const std::string failure =
        compare(2, store, [&](int rank) { return rank == 0 ? a : b; }).failures[0];
    const std::string begin = "rank 1 differs from rank 0: ";
    return failure.starts_with(begin) ? failure.substr(begin.size()) : failure;
  };
  EXPECT_EQ(differs(items_with({}), compared_items_of_job(job_with({}), "cuda")),
            "device is cuda, not cpu");
  const data::Fingerprint print{.samples = 8, .classes = 2, .labels = 1, .files = 2, .images = 3};
  const auto data = [&](const data::Fingerprint& train) {
    return compared_items_of_data(job_with({}), train, &print);
  };
  const auto other = [&](auto change) {
    data::Fingerprint changed = print;
    change(changed);
    return differs(data(print), data(changed));
  };
  EXPECT_EQ(other([](auto&) {}), "");
  const auto key = [&](auto change) {
    const std::string difference = other(change);
    return difference.substr(0, difference.find(" is "));
  };
  EXPECT_EQ(other([](auto& p) { p.samples = 7; }), "data.train's samples is 7, not 8");
  EXPECT_EQ(other([](auto& p) { p.classes = 3; }), "data.train's classes is 3, not 2");
  EXPECT_EQ(key([](auto& p) { p.labels = 7; }), "data.train's labels (hash)");
  EXPECT_EQ(key([](auto& p) { p.files = 7; }), "data.train's list of files (hash)");
  EXPECT_EQ(key([](auto& p) { p.images = 7; }), "data.train's first images (hash)");
  EXPECT_EQ(key([](auto& p) { p.tokenizer = 7; }), "data.train's tokenizer (hash)");
  EXPECT_THAT(differs(data(print), compared_items_of_data(job_with({}), print, nullptr)),
              AllOf(HasSubstr("data.test's classes is nothing, not 2"),
                    HasSubstr("data.test's samples is 0, not 8")));
}

TEST(StartComparisonTest, RankThatDoesNotCome_IsNamed) {
  CountingStore store;
  const auto items = items_with({});
  const std::chrono::milliseconds soon(20);
  StartComparison zero(items, "job", {0, 3}, store, soon), two(items, "job", {2, 3}, store, soon);
  try {
    zero.wait();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_THAT(error.failure(), HasSubstr("rank 1 did not reach"));
  }
}

}  // namespace
}  // namespace fleet
