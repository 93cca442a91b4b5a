// Batches by length (data.lengths) train a small language model as rows padded to one length do,
// with each strategy, on any number of ranks and across a restart.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "tests/engine/train/trainer_job.h"
#include "text/token_file.h"
#include "train/explain.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kBatch = 8;  // rows of all ranks in an update
constexpr int64_t kLongest = 64;
constexpr char kLengths[] = "data.lengths=[16, 32, 64]";

struct LengthStrategy {
  std::string name;
  std::vector<std::string> options;
  double tolerance = 1e-5;   // of a loss, against another way to train the same samples
  int ranks_of_a_batch = 1;  // a pipeline's stages train the same rows
};

const std::vector<LengthStrategy> kAlone = {
    {"none", {}},
    {"amp", {"strategy.amp=true"}, 2e-2},  // 8 bits of a loss of 4
    {"recompute",
     {"strategy.recompute=true", "strategy.recompute_configs.checkpoints=['every block']"}},
    {"gradient_merge",
     {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=3"}},
    {"ema", {"train.ema=0.9"}},
    {"clip", {"optimizer.clip=global_norm", "optimizer.clip_norm=0.1"}},
};

const std::vector<LengthStrategy> kOverRanks = {
    {"none", {}},
    {"amp", {"strategy.amp=true", "strategy.amp_configs.use_pure_bf16=true"}, 2e-2},
    {"sharding_1", {"strategy.sharding=true", "strategy.sharding_configs.stage=1"}},
    {"sharding_2", {"strategy.sharding=true", "strategy.sharding_configs.stage=2"}},
    {"sharding_3", {"strategy.sharding=true", "strategy.sharding_configs.stage=3"}},
    {"gradient_merge",
     {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"}},
    {"ema_and_clip",
     {"train.ema=0.9", "train.evaluate_every=1", "optimizer.clip=global_norm",
      "optimizer.clip_norm=0.1"}},
    {"localsgd",
     {"strategy.localsgd=true", "strategy.localsgd_configs.k_steps=1",
      "strategy.localsgd_configs.begin_step=1"}},
    {"pipeline",
     {"strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=4"},
     1e-5,
     2},
};

// A batch whose rows are padded to kLongest.
class Padded {
 public:
  explicit Padded(const data::Batch& batch) : batch_(batch) {
    for (data::BatchColumn& column : batch_.columns) {
      const size_t one = size_of(column.dtype), row = batch.length * one;
      std::vector<std::byte>& all =
          memory_.emplace_back(static_cast<size_t>(batch.size * kLongest) * one);
      for (int64_t i = 0; i < batch.size; ++i) {
        std::byte* to = all.data() + i * kLongest * one;
        std::copy_n(column.data.data() + i * row, row, to);
        if (column.name == "document_ids") fill(to, batch.length, -1);
        if (column.name == "labels") fill(to, batch.length, -100);
      }
      column.data = all;
    }
    batch_.length = 0;
  }
  const data::Batch& batch() const { return batch_; }

 private:
  static void fill(std::byte* row, int64_t from, int64_t value) {
    std::fill_n(reinterpret_cast<int64_t*>(row) + from, kLongest - from, value);
  }
  data::Batch batch_;
  std::vector<std::vector<std::byte>> memory_;
};

// A job of one rank, step by step.
struct Stepper {
  explicit Stepper(const Job& given) : job(given), data(open_data(job, device, {}, nullptr)) {
    runner = std::make_unique<StepRunner>(job, data.get(), device, StepRunnerOptions{});
    runner->begin();
  }
  double train(const data::Batch& batch) {
    runner->train(batch, true, 0.05);
    return runner->session().read_metrics(false).loss();
  }
  double evaluate() {
    MetricSums sums(runner->session().training().metrics);
    data->test()->start_epoch(0);
    while (const data::Batch* batch = data->test()->next()) sums.add(runner->evaluate(*batch));
    return sums.loss();
  }
  HostDevice device;
  const Job job;
  std::unique_ptr<JobData> data;
  std::unique_ptr<StepRunner> runner;
};

class BatchesByLength : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    folder_ = ::testing::TempDir() + "/lengths_test_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    write_documents("train.bin", 150);
    write_documents("test.bin", 33);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    TrainerTest::TearDown();
  }

  // Documents of 2 to 61 tokens, most of them short. Token 0 ends them.
  void write_documents(const std::string& name, int count) const {
    text::TokenWriter writer(folder_ + "/" + name, text::TokenFormat::kNanoGpt,
                             text::TokenWidth::kUint16);
    for (int i = 0; i < count; ++i) {
      std::vector<uint32_t> document = {static_cast<uint32_t>(1 + i * 11 % 63)};
      const int tokens = 1 + (i * 7 % 20) * (i % 3 + 1);
      for (int t = 0; t < tokens; ++t) document.push_back(1 + (document.back() * 5 + i % 3) % 63);
      document.push_back(0);
      writer.add(document);
    }
    writer.finish();
  }

  ConfigTree tree(const std::vector<std::string>& overrides) const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "task": "causal_lm",
      "model": {"name": "gpt2", "vocab_size": 64, "n_embd": 16, "n_layer": 2, "n_head": 2,
                "n_positions": 64, "embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0},
      "data": {"source": "tokens", "root": ")" + folder_ +
                                                R"(", "sequence_length": 64, "packing": "none",
               "train": {"file": "train.bin"}, "test": {"file": "test.bin"}, "end_of_text": "0"},
      "optimizer": {"name": "momentum", "momentum": 0.9},
      "learning_rate": {"name": "constant", "base": 0.05},
      "train": {"max_steps": 12, "fetch_every": 1, "evaluate_every": 0}
    })",
                                            "test");
    apply_overrides(tree, with(overrides, {"train.output=" + output_}));
    return tree;
  }
  Job job(const std::vector<std::string>& options, int64_t rows = kBatch) const {
    return make_job(tree(with({"data.batch_size=" + std::to_string(rows)}, options)));
  }

  std::vector<double> losses() const {
    std::vector<double> all;
    for (const auto& line : events("train")) all.push_back(line["loss"]);
    return all;
  }

  std::string folder_;
};

TEST_F(BatchesByLength, ShorterRows_TrainAsPaddedOnes) {
  for (const LengthStrategy& strategy : kAlone) {
    SCOPED_TRACE(strategy.name);
    Stepper own(job(with(strategy.options, {kLengths}))), padded(job(strategy.options));
    std::set<int64_t> lengths;
    double first = 0, last = 0;
    own.data->train().start_epoch(0);
    for (int step = 0; step < 12; ++step) {
      const data::Batch* batch = own.data->train().next();
      ASSERT_TRUE(batch);
      lengths.insert(batch->length);
      const double loss = own.train(*batch);
      EXPECT_NEAR(loss, padded.train(Padded(*batch).batch()), strategy.tolerance);
      if (step == 0) first = loss;
      last = loss;
    }
    EXPECT_LT(last, first);
    EXPECT_THAT(lengths, ElementsAre(16, 32, 64));
    EXPECT_LE(distance(weights_of(own.runner->executor()), weights_of(padded.runner->executor())),
              10 * strategy.tolerance);
  }
}

TEST_F(BatchesByLength, Evaluation_HasThePaddedMetrics) {
  Stepper own(job({kLengths})), padded(job({}));
  EXPECT_NEAR(own.evaluate(), padded.evaluate(), 1e-6);
}

TEST_F(BatchesByLength, TwoRanks_TrainAsOne) {
  for (const LengthStrategy& strategy : kOverRanks) {
    SCOPED_TRACE(strategy.name);
    const auto options = with(strategy.options, {kLengths});
    std::filesystem::remove_all(output_);
    const bool staged = strategy.ranks_of_a_batch > 1;
    run(staged ? job({kLengths}) : job(options), 1);
    const std::vector<double> one = losses();
    std::filesystem::remove_all(output_);
    run(job(options, staged ? kBatch : kBatch / 2), 2);
    const std::vector<double> two = losses();
    ASSERT_THAT(one, SizeIs(12));
    ASSERT_THAT(two, SizeIs(12));
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], two[i], strategy.tolerance) << i;
  }
}

TEST_F(BatchesByLength, Interrupted_GoesOnBitIdentically) {
  for (const auto& strategy : std::vector<std::vector<std::string>>{
           {"strategy.amp=true", "strategy.gradient_merge=true",
            "strategy.gradient_merge_configs.k_steps=2"},
           {"strategy.sharding=true", "strategy.sharding_configs.stage=3"}}) {
    const auto options = with(strategy, {kLengths, "checkpoint.every_steps=3"});
    std::filesystem::remove_all(output_);
    const Outcome whole = run(job(options, kBatch / 2), 2);
    std::filesystem::remove_all(output_);
    run(job(with(options, {"train.max_steps=8", "checkpoint.at_end=false"}), kBatch / 2), 2);
    const Outcome resumed = run(job(with(options, {"checkpoint.resume=auto"}), kBatch / 2), 2);
    EXPECT_EQ(distance(together(whole), together(resumed)), 0);
  }
}

TEST_F(BatchesByLength, Plans_TakeTheMemoryOfTheLongest) {
  Stepper own(job({kLengths}));
  const Executor& executor = own.runner->executor();
  for (int i = 1; i < 3; ++i) {
    EXPECT_EQ(executor.plan(i).persistent_bytes, executor.plan(0).persistent_bytes);
    EXPECT_LT(executor.plan(i).arena_bytes, executor.plan(i - 1).arena_bytes);
  }
}

TEST_F(BatchesByLength, Explanation_HasEachLength) {
  const Explanation explained = explain(tree({kLengths}), {});
  ASSERT_THAT(explained.lengths, SizeIs(3));
  EXPECT_EQ(explained.lengths[0].length, 16);
  EXPECT_EQ(explained.lengths[2].length, 64);
  EXPECT_LT(explained.lengths[0].planned.activations, explained.lengths[2].planned.activations);
  EXPECT_EQ(explained.lengths[2].planned.total(), explained.cost.memory.planned.total());
  EXPECT_THAT(explain(tree({}), {}).lengths, SizeIs(0));
}

}  // namespace
}  // namespace fleet
