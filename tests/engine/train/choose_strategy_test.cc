#include "train/choose_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/process_memory.h"
#include "tensor/host.h"
#include "tests/captured_log.h"
#include "tests/engine/train/rank_threads.h"
#include "train/measure_links.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
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
LinkRates link(double delay, double bytes_per_second, int communicators = 1) {
  LinkRates link{.transport = "gloo", .ranks = 2, .nodes = 2, .communicators = communicators};
  for (double bytes = 4096; bytes < 1e8; bytes *= 4) {
    link.all_reduce.push_back({bytes, delay + bytes / bytes_per_second});
  }
  return link;
}

ExplainOptions two_nodes(const std::vector<LinkRates>& links = {},
                         size_t available = size_t{1} << 40) {
  ExplainOptions options{.ranks = 2, .nodes = 2};
  options.rates = even_rates();
  for (const LinkRates& link : links) options.rates->set_link(link);
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
Chosen choose(const ExplainOptions& how, const ConfigTree& job = tree(), bool own_batches = false) {
  Chosen chosen;
  for (const StrategyChoice& choice : choose_strategy(job, how, own_batches)) {
    EXPECT_NE(choice.reason, "");
    if (!choice.override.empty()) chosen.set.push_back(choice.override);
    chosen.reasons.push_back(choice.reason);
  }
  return chosen;
}

// The number of messages, and the predicted step, with these settings.
std::pair<size_t, double> outcome(const ExplainOptions& how, const Sets& set,
                                  const std::string& model = kResnet) {
  const Explanation job = explain(tree(set, model), how);
  size_t messages = 0;
  for (const ExplainedGroup& group : job.groups) messages += group.bytes.size();
  return {messages, job.cost.time->total};
}

TEST(ChooseStrategy, CheapMessages_AreMoreThanByDefault) {
  // 17 MB of gradients at 3 GB/s: as long as the computation, behind which they can hide.
  const ExplainOptions cheap = two_nodes({link(10e-6, 3e9)});
  const auto before = outcome(cheap, {}, kMlp);
  const auto after = outcome(cheap, choose(cheap, tree({}, kMlp)).set, kMlp);
  EXPECT_GT(after.first, before.first);
  EXPECT_LT(after.second, 0.98 * before.second);
}

// The default closes its first group at 50 gradients, of 65.
TEST(ChooseStrategy, ExpensiveMessages_AreOne) {
  const ExplainOptions expensive = two_nodes({link(0.5, 1e9)});
  EXPECT_EQ(outcome(expensive, {}).first, 2U);
  const auto after = outcome(expensive, choose(expensive).set);
  EXPECT_EQ(after.first, 1U);
  EXPECT_LT(after.second, 0.6 * outcome(expensive, {}).second);
}

TEST(ChooseStrategy, NothingToGain_LeavesTheDefaults) {
  const Chosen chosen = choose(two_nodes({link(1e-9, 1e15)}));
  EXPECT_THAT(chosen.set, IsEmpty());
  EXPECT_THAT(chosen.reasons, Contains(StartsWith("fuse_grad_size_in_MB stays 32: ")));
  EXPECT_THAT(chosen.reasons, Contains(StartsWith("memory suffices: ")));
}

TEST(ChooseStrategy, MessagesThatMoveAtOnce_GetMoreCommunicators) {
  // Two at once take as long as one: only the delay of each counts.
  const ConfigTree job = tree({"strategy.fuse_grad_size_in_MB=1"}, kMlp);  // 3 groups
  const Chosen apart = choose(two_nodes({link(0.02, 1e9), link(0.02, 1e9, 2)}), job);
  EXPECT_NE(apart.value("nccl_comm_num"), "");
  EXPECT_EQ(apart.value("sync_nccl_allreduce"), "false");
  // Two at once take twice as long.
  const Chosen same = choose(two_nodes({link(0.02, 1e9), link(0.04, 5e8, 2)}), job);
  EXPECT_EQ(same.value("nccl_comm_num"), "");
}

TEST(ChooseStrategy, GivenSettings_Stay) {
  const ExplainOptions cheap = two_nodes({link(10e-6, 3e7)});
  const Chosen chosen =
      choose(cheap, tree({"strategy.fuse_grad_size_in_MB=32", "strategy.nccl_comm_num=1"}));
  EXPECT_THAT(chosen.set, IsEmpty());
  EXPECT_THAT(chosen.reasons, Contains("groups of gradients stay: fuse_grad_size_in_MB is given"));
  EXPECT_THAT(chosen.reasons, Contains("nccl_comm_num is given"));
}

TEST(ChooseStrategy, GroupsOfNodes_AreUsedWhereTheyAreFaster) {
  ExplainOptions how{.ranks = 4, .nodes = 2};
  how.rates = even_rates();
  LinkRates flat = link(0.2, 1e9), grouped = link(0.01, 1e9);
  flat.ranks = grouped.ranks = 4;
  grouped.transport = "gloo in groups of 2";
  how.rates->set_link(flat);
  how.rates->set_link(grouped);
  EXPECT_THAT(choose(how, tree({"comm.backend=gloo"})).set,
              Contains("strategy.hierarchical_allreduce_inter_nranks=2"));
  // comm.backend=auto does that already.
  const Chosen by_transport = choose(how);
  EXPECT_EQ(by_transport.value("use_hierarchical_allreduce"), "");
  EXPECT_EQ(by_transport.value("hierarchical_allreduce_inter_nranks"), "");
  EXPECT_THAT(by_transport.reasons, Contains(StartsWith("allreduces are hierarchical already: ")));
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

TEST(ChooseStrategy, ConfigsThatTheUserGave_Stay) {
  const ConfigTree job = tree({"optimizer.name=adam", "strategy.sharding_configs.stage=3"}, kMlp);
  const size_t whole = explain(job, two_nodes()).cost.memory.total();
  const Chosen chosen = choose(two_nodes({link(1e-5, 1e9)}, whole * 8 / 10), job);
  EXPECT_THAT(chosen.set, Contains("strategy.sharding=true"));
  EXPECT_EQ(chosen.value("sharding_configs.stage"), "");
}

// The last resort, and only where it computes the same.
TEST(ChooseStrategy, MicroBatches_OnlyWhereTheyChangeNothing) {
  const Sets large = {"data.batch_size=4096", "strategy.recompute=false",
                      "strategy.sharding=false"};
  const auto available = [](const ConfigTree& job) {
    return explain(job, two_nodes()).cost.memory.total() * 7 / 10;
  };
  const ConfigTree mlp = tree(large, kMlp);
  const ExplainOptions little = two_nodes({link(1e-5, 1e9)}, available(mlp));
  const Chosen chosen = choose(little, mlp);
  EXPECT_THAT(chosen.set, Contains("strategy.gradient_merge=true"));
  EXPECT_THAT(chosen.set, Contains(StartsWith("data.batch_size=")));
  EXPECT_THAT(choose(little, mlp, true).reasons,
              Contains("no gradient_merge: the program makes the batches"));
  ConfigTree steps = mlp;
  apply_overrides(steps, {"train.max_steps=10"});
  const Chosen counted = choose(little, steps);
  EXPECT_EQ(counted.value("gradient_merge"), "");
  EXPECT_THAT(counted.reasons, Contains("no gradient_merge: train.max_steps counts steps"));
  const ConfigTree resnet = tree({"strategy.recompute=false", "strategy.sharding=false"});
  EXPECT_THAT(choose(two_nodes({link(1e-5, 1e9)}, available(resnet)), resnet).reasons,
              Contains("no gradient_merge: batch normalisation would see smaller batches"));
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

TEST(MeasureLinks, EverySizeIsMeasured_EqualOnAllRanks) {
  std::mutex mutex;
  std::vector<std::string> seen;
  run_ranks_well(2, [&](RankThread& rank) {
    HostDevice device;
    RankCoordinator control(rank.communicator);
    const auto links = measure_links(device, *rank.communicator, control, {.ranks = 2});
    ASSERT_EQ(links.size(), 2U);
    std::string text;
    for (const LinkRates& link : links) {
      EXPECT_EQ(link.transport, "inprocess");
      ASSERT_GE(link.all_reduce.size(), 3U);
      for (const TransferSample& one : link.all_reduce) {
        EXPECT_GT(one.seconds, 0);
        EXPECT_LE(one.busy, one.seconds);
        text += std::to_string(one.bytes) + " " + std::to_string(one.seconds) + "\n";
      }
    }
    EXPECT_EQ(links[1].communicators, 2);
    const std::lock_guard lock(mutex);
    seen.push_back(text);
  });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0], seen[1]);
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
  EXPECT_THAT(log_, HasSubstr("auto: inprocess, 2 ranks on 1 node: an all_reduce of 4 KiB in"));
  EXPECT_THAT(log_, HasSubstr("auto: memory suffices"));
  EXPECT_THAT(log_, HasSubstr("nccl_comm_num"));
}

TEST_F(AtStart, WithoutAuto_NothingIsMeasured) {
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
