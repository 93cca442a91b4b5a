#include "train/choose_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/process_memory.h"
#include "tensor/host.h"
#include "tests/captured_log.h"
#include "tests/engine/train/rank_threads.h"
#include "train/trainer.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using Sets = std::vector<std::string>;

constexpr char kResnet[] = R"({"name": "resnet20", "num_classes": 10})";
// Without batch normalisation.
constexpr char kMlp[] = R"({"name": "mlp", "num_classes": 10, "hidden": [1024, 1024]})";

ConfigTree tree(const Sets& overrides = {}, const std::string& model = kResnet) {
  ConfigTree tree = ConfigTree::from_json(R"({
      "model": )" + model + R"(,
      "data": {"source": "synthetic", "batch_size": 16,
               "image": {"channels": 3, "height": 32, "width": 32}, "train": {"samples": 64}},
      "optimizer": {"name": "momentum", "momentum": 0.9}, "strategy": {"auto": true}})",
                                          "job.json");
  apply_overrides(tree, overrides);
  return tree;
}

// A machine on which bytes and operations cost the same everywhere.
MachineRates even_rates() {
  MachineRates rates{.device = "a test's machine", .origin = "made up"};
  rates.peak = {{"float32", 1e11}};
  rates.bytes_per_second = 2e10;
  rates.op_seconds = 1e-6;
  return rates;
}

// A link with a delay of each message, and a rate.
LinkRates link(double delay, double bytes_per_second) {
  LinkRates link{.transport = "gloo", .ranks = 2, .nodes = 2};
  for (double bytes = 4096; bytes < 1e8; bytes *= 4) {
    link.all_reduce.push_back({bytes, delay + bytes / bytes_per_second});
  }
  return link;
}

ExplainOptions two_nodes(const std::vector<LinkRates>& links = {},
                         size_t available = size_t{1} << 40) {
  ExplainOptions options{.ranks = 2, .nodes = 2};
  options.rates = even_rates();
  options.rates->links = links;
  options.available_bytes = available;
  return options;
}

struct Chosen {
  Sets set, reasons;

  // The value that was chosen for this key below "strategy."; "" if none was.
  std::string value(const std::string& key) const {
    const std::string prefix = "strategy." + key + "=";
    for (const std::string& one : set) {
      if (one.starts_with(prefix)) return one.substr(prefix.size());
    }
    return "";
  }
};
Chosen choose(const ExplainOptions& how, const ConfigTree& job = tree(),
              const BatchFacts& batches = {}) {
  Chosen chosen;
  for (const StrategyChoice& choice : choose_strategy(job, how, batches)) {
    EXPECT_NE(choice.reason, "");
    if (!choice.override.empty()) chosen.set.push_back(choice.override);
    chosen.reasons.push_back(choice.reason);
  }
  return chosen;
}

TEST(ChooseStrategy, EnoughMemory_LeavesAllAsItIs) {
  const Chosen chosen = choose(two_nodes());
  EXPECT_THAT(chosen.set, IsEmpty());
  EXPECT_THAT(chosen.reasons, ElementsAre(StartsWith("memory suffices: ")));
}

TEST(ChooseStrategy, TooLittleMemory_IsMadeToSuffice) {
  const std::string large = "data.batch_size=128";
  const size_t available = explain(tree({large}), two_nodes()).cost.memory.total() * 7 / 10;
  Chosen chosen = choose(two_nodes({link(1e-5, 1e9)}, available), tree({large}));
  ASSERT_THAT(chosen.set, Contains("strategy.recompute=true"));
  EXPECT_THAT(chosen.reasons, Contains(StartsWith("a rank would need ")));
  chosen.set.push_back(large);
  EXPECT_LE(explain(tree(chosen.set), two_nodes()).cost.memory.total(), available);
}

TEST(ChooseStrategy, StatesThatDoNotFit_AreSharded) {
  const ConfigTree job = tree({"optimizer.name=adam"}, kMlp);
  const size_t whole = explain(job, two_nodes()).cost.memory.total();
  const Chosen chosen = choose(two_nodes({link(1e-5, 1e9)}, whole * 8 / 10), job);
  EXPECT_THAT(chosen.set, Contains("strategy.sharding=true"));
  EXPECT_EQ(chosen.value("gradient_merge"), "");
}

TEST(ChooseStrategy, UnknownRates_TakeTheFirstThatFits) {
  const ConfigTree job = tree({"optimizer.name=adam"}, kMlp);
  ExplainOptions how = two_nodes({}, explain(job, two_nodes()).cost.memory.total() * 95 / 100);
  EXPECT_THAT(choose(how, job).reasons, Each(Not(HasSubstr("unknown"))));
  how.rates.reset();
  const Chosen first = choose(how, job);
  EXPECT_NE(first.value("sharding_configs.stage"), "");
  EXPECT_EQ(first.value("recompute"), "");
  EXPECT_THAT(first.reasons, Contains(HasSubstr("rates of this machine")));
}

TEST(ChooseStrategy, ConfigsThatTheUserGave_Stay) {
  const ConfigTree job = tree({"optimizer.name=adam", "strategy.sharding_configs.stage=3"}, kMlp);
  const size_t whole = explain(job, two_nodes()).cost.memory.total();
  const Chosen chosen = choose(two_nodes({link(1e-5, 1e9)}, whole * 8 / 10), job);
  EXPECT_THAT(chosen.set, Contains("strategy.sharding=true"));
  EXPECT_EQ(chosen.value("sharding_configs.stage"), "");
}

// Batches of 8192 over two ranks, which only micro-batches can make fit.
const Sets kLargeBatch = {"data.batch_size=4096", "strategy.recompute=false",
                          "strategy.sharding=false"};
ExplainOptions too_little(const ConfigTree& job) {
  return two_nodes({link(1e-5, 1e9)}, explain(job, two_nodes()).cost.memory.total() * 7 / 10);
}
BatchFacts with_samples(int64_t samples) {
  return {.samples = [samples] { return std::optional(samples); }};
}

// The last resort, and only where it computes the same.
TEST(ChooseStrategy, MicroBatches_OnlyWhereTheyChangeNothing) {
  const ConfigTree mlp = tree(kLargeBatch, kMlp);
  const ExplainOptions little = too_little(mlp);
  const BatchFacts whole = with_samples(4 * 8192);
  const Chosen chosen = choose(little, mlp, whole);
  EXPECT_THAT(chosen.set, Contains("strategy.gradient_merge=true"));
  EXPECT_THAT(chosen.set, Contains(StartsWith("data.batch_size=")));
  const auto expect_none = [&](const Sets& more, const BatchFacts& batches,
                               const std::string& obstacle) {
    ConfigTree job = mlp;
    apply_overrides(job, more);
    const Chosen none = choose(little, job, batches);
    EXPECT_EQ(none.value("gradient_merge"), "") << obstacle;
    EXPECT_THAT(none.reasons, Contains("no gradient_merge: " + obstacle));
  };
  expect_none({}, {.own = true}, "the program makes the batches");
  expect_none({"train.max_steps=10"}, whole, "train.max_steps counts steps");
  expect_none({"train.swa.from_epoch=1", "train.swa.every_steps=2"}, whole,
              "train.swa.every_steps counts steps");
  expect_none({"optimizer.frozen=fc1.*", "train.unfreeze_at=4 steps"}, whole,
              "train.unfreeze_at counts steps");
  expect_none({}, {}, "the number of training samples is unknown");
  expect_none({}, with_samples(4 * 8192 + 1),
              "an epoch of 32769 samples would not have 2 times as many batches");
  expect_none({"learning_rate.warmup_epochs=1"}, whole,
              "the learning rate changes within an epoch");
  expect_none({"data.augment.mixup_alpha=0.2"}, whole,
              "images are mixed with others of their batch (mixup, cutmix)");
  const ConfigTree resnet = tree({"strategy.recompute=false", "strategy.sharding=false"});
  EXPECT_THAT(choose(too_little(resnet), resnet, whole).reasons,
              Contains(AllOf(HasSubstr("no gradient_merge"), HasSubstr("smaller batches"))));
}

// A restart may find more or less memory than the start before.
TEST(ChooseStrategy, MicroBatchesOfTheCheckpoint_AreKept) {
  const ConfigTree job = tree({}, kMlp);  // 32 samples a step
  const auto from = [](int64_t global_batch, int64_t merged_steps) {
    return BatchFacts{.samples = [] { return std::optional<int64_t>(64); },
                      .saved = SavedBatches{6, global_batch, merged_steps}};
  };
  const Chosen merged = choose(two_nodes(), job, from(16, 2));
  EXPECT_EQ(merged.value("gradient_merge_configs.k_steps"), "2");
  EXPECT_THAT(merged.set, Contains("data.batch_size=8"));
  EXPECT_THAT(merged.reasons, Contains(HasSubstr("the checkpoint of step 6")));
  EXPECT_EQ(choose(two_nodes(), job, from(16, 1)).value("gradient_merge"), "") << "of another job";
  const ConfigTree large = tree(kLargeBatch, kMlp);
  const Chosen whole = choose(too_little(large), large, from(8192, 1));
  EXPECT_EQ(whole.value("gradient_merge"), "");
  EXPECT_THAT(whole.reasons, Contains("no gradient_merge: the checkpoint's batches are kept"));
}

TEST(ChooseStrategy, StrategiesThatTheUserAskedFor_StayOn) {
  // gradient_merge and recompute would switch localsgd off, by Paddle's rules.
  const ConfigTree job = tree({"strategy.localsgd=true", "strategy.localsgd_configs.k_steps=4"});
  const Chosen chosen = choose(two_nodes({link(1e-5, 1e9)}, 1000), job);
  EXPECT_EQ(chosen.value("recompute"), "");
  EXPECT_EQ(chosen.value("gradient_merge"), "");
}

TEST(ChooseStrategy, ChoicesBecomeSettings_OfTheJob) {
  const Job job = make_job(
      with_choices(tree(), {{"strategy.fuse_grad_size_in_MB=4", "a reason"}, {"", "a finding"}}));
  EXPECT_EQ(job.strategy.integer("fuse_grad_size_in_MB"), 4);
  EXPECT_EQ(job.settings.origin("strategy.fuse_grad_size_in_MB"), "strategy.auto");
}

TEST(ChooseStrategy, TheExplanation_ShowsThem) {
  Explanation job = explain(tree(), two_nodes());
  job.choices = {{"strategy.fuse_grad_size_in_MB=4", "a step of 1 ms"}, {"", "memory suffices"}};
  EXPECT_THAT(explanation_text(job),
              AllOf(HasSubstr("auto: strategy.fuse_grad_size_in_MB=4: a step of 1 ms\n"),
                    HasSubstr("auto: memory suffices\n")));
  EXPECT_EQ(nlohmann::json::parse(explanation_json(job))["choices"].size(), 2u);
}

class AtStart : public ::testing::Test {
 protected:
  AtStart() {
    write_rates(even_rates(), file_);
    ::setenv("FLEET_RATES_FILE", file_.c_str(), 1);
  }
  ~AtStart() override {
    ::unsetenv("FLEET_RATES_FILE");
    std::filesystem::remove(file_);
  }
  // The strategy's settings of each rank.
  std::vector<std::string> settings(const ConfigTree& job) {
    std::vector<std::string> all(2);
    log_ = captured_log([&] {
      run_ranks_well(2, [&](RankThread& rank) {
        HostDevice device;
        const ConfigTree chosen = choose_strategy_at_start(job, {.rank = rank.rank,
                                                                 .ranks = 2,
                                                                 .ranks_here = 2,
                                                                 .device = &device,
                                                                 .compute = rank.communicator,
                                                                 .store = rank.store.get()});
        all[static_cast<size_t>(rank.rank)] = make_job(chosen).strategy.print();
      });
    });
    return all;
  }
  const std::string file_ =
      ::testing::TempDir() + "/auto_rates_" + std::to_string(::getpid()) + ".json";
  std::string log_;
};

TEST_F(AtStart, AllRanks_HaveTheSameSettings) {
  const auto all = settings(tree());
  EXPECT_EQ(all[0], all[1]);
  EXPECT_THAT(log_, HasSubstr("auto: memory suffices"));
}

// An earlier start of the run had less memory.
TEST_F(AtStart, Restarted_GoesOnWithTheMicroBatchesOfItsCheckpoint) {
  const std::string output = ::testing::TempDir() + "/auto_run_" + std::to_string(::getpid());
  const auto train = [&](const ConfigTree& job, bool restarted) {
    run_ranks_well(2, [&](RankThread& rank) {
      HostDevice device;
      const RunStart start{"a run", restarted};
      const ConfigTree chosen = choose_strategy_at_start(job, {.rank = rank.rank,
                                                               .ranks = 2,
                                                               .ranks_here = 2,
                                                               .start = start,
                                                               .device = &device,
                                                               .compute = rank.communicator,
                                                               .store = rank.store.get()});
      Trainer trainer(make_job(chosen), device,
                      {.rank = rank.rank,
                       .world = 2,
                       .communicator = rank.communicator,
                       .store = rank.store,
                       .run = start.run,
                       .restarted = restarted});
      EXPECT_EQ(trainer.run().steps, restarted ? 8 : 3);
    });
  };
  const std::string small = R"({"name": "mlp", "num_classes": 10, "hidden": [8]})";
  const Sets two_epochs = {"train.output=" + output, "train.epochs=2"};
  ConfigTree first = tree(two_epochs, small);
  apply_overrides(first, {"strategy.auto=false", "strategy.gradient_merge=true",
                          "strategy.gradient_merge_configs.k_steps=2", "data.batch_size=8",
                          "train.max_steps=3"});
  train(first, false);
  train(tree(two_epochs, small), true);
  std::filesystem::remove_all(output);
}

TEST_F(AtStart, WithoutAuto_NothingIsChosen) {
  const auto all = settings(tree({"strategy.auto=false"}));
  EXPECT_THAT(log_, Not(HasSubstr("auto:")));
}

TEST_F(AtStart, RefusedJob_FailsOnAllRanks) {
  const ConfigTree job =
      tree({"strategy.fuse_grad_size_in_num=4", "strategy.fuse_grad_size_in_MB=1"});
  const std::vector<RankEnd> ends = run_ranks(2, [&](RankThread& rank) {
    HostDevice device;
    choose_strategy_at_start(job, {.rank = rank.rank,
                                   .ranks = 2,
                                   .ranks_here = 2,
                                   .device = &device,
                                   .compute = rank.communicator,
                                   .store = rank.store.get()});
  });
  EXPECT_EQ(ends[0].code, ErrorCode::kUsage) << ends[0].message;
  EXPECT_EQ(ends[1].code, ErrorCode::kPeerLost) << ends[1].message;
}

}  // namespace
}  // namespace fleet
