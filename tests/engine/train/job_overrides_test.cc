// --set over a job file: other names, whole sections, null.
#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/errors.h"
#include "train/job.h"
#include "train/unused_options.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kImageNet[] = R"({
  "model": {"name": "resnet50", "num_classes": 10, "zero_init_residual": true},
  "data": {"source": "image_list", "train": {"list": "train.txt"}, "batch_size": 32},
  "optimizer": {"name": "momentum", "momentum": 0.9, "use_nesterov": true, "weight_decay": 1e-4},
  "learning_rate": {"name": "piecewise", "values": [0.1, 0.01], "boundaries": [30],
                    "warmup_epochs": 5},
  "train": {"epochs": 90}
})";

struct Result {
  Job job;
  std::vector<std::string> lines;
};

Result with(const std::vector<std::string>& overrides, const std::string& json = kImageNet) {
  ConfigTree tree = ConfigTree::from_json(json, "job.json");
  Result result;
  result.lines = apply_overrides(tree, overrides);
  result.job = make_job(tree);
  return result;
}

std::string refusal(const std::vector<std::string>& overrides,
                    const std::string& json = kImageNet) {
  try {
    with(overrides, json);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(JobOverrides, AnotherOptimizer_DropsWhatBelongsToTheFormer) {
  const Result result = with({"optimizer.name=adam", "optimizer.beta1=0.8"});
  EXPECT_EQ(result.job.optimizer.text("name"), "adam");
  EXPECT_EQ(result.job.optimizer.number("beta1"), 0.8);
  EXPECT_EQ(result.job.optimizer.number("weight_decay"), 1e-4);  // both have it
  EXPECT_THAT(result.lines,
              ElementsAre(AllOf(HasSubstr("optimizer.name is adam now"), HasSubstr("momentum"),
                                HasSubstr("optimizer.momentum, optimizer.use_nesterov"))));
}

// data.batch_size after the ranks have shared the global batch.
int64_t shared(int64_t ranks, const std::vector<std::string>& overrides, std::string* line,
               const std::string& json = R"({"model": {"name": "lenet"}})") {
  ConfigTree tree = ConfigTree::from_json(json, "job.json");
  apply_overrides(tree, overrides);
  *line = divide_global_batch(tree, ranks);
  return make_job(tree).data.integer("batch_size");
}

TEST(GlobalBatch, IsSharedByTheRanks) {
  std::string line;
  EXPECT_EQ(shared(1, {"data.global_batch_size=96"}, &line), 96);
  EXPECT_EQ(shared(3, {"data.global_batch_size=96"}, &line), 32);
  EXPECT_EQ(shared(4, {}, &line), 32);  // the default
  EXPECT_EQ(line, "");
}

TEST(GlobalBatch, OverTheJobFilesBatch_SaysSo) {
  std::string line;
  EXPECT_EQ(shared(2, {"data.global_batch_size=96"}, &line, kImageNet), 48);
  EXPECT_EQ(line, "data.batch_size of job.json is ignored");
}

TEST(GlobalBatch, WithABatchOrNotDivisible_IsRefused) {
  const auto refusal = [](int64_t ranks, const std::vector<std::string>& overrides) {
    return usage_failure([&] {
      std::string line;
      shared(ranks, overrides, &line);
    });
  };
  EXPECT_THAT(refusal(5, {"data.global_batch_size=96"}),
              HasSubstr("is 96, which 5 ranks cannot share equally"));
  EXPECT_THAT(refusal(2, {"data.global_batch_size=96", "data.batch_size=8"}),
              HasSubstr("are both given"));
  EXPECT_THAT(refusal(2, {"data.global_batch_size=many"}), HasSubstr("cannot be \"many\""));
}

TEST(JobOverrides, AnotherScheduleModelOrSource_DoesSoToo) {
  const Result result = with({"learning_rate.name=cosine", "learning_rate.base=0.2",
                              "model.name=lenet", "data.source=synthetic"});
  EXPECT_EQ(result.job.schedule.number("base"), 0.2);
  EXPECT_EQ(result.job.schedule.number("warmup_epochs"), 5);
  EXPECT_EQ(result.job.model.integer("num_classes"), 10);
  EXPECT_EQ(result.lines.size(), 3u);
}

TEST(JobOverrides, KeyThatBelongsToAnother_IsRefusedByTheCommandLineAndTheFile) {
  EXPECT_THAT(refusal({"optimizer.name=adam", "optimizer.momentum=0.8"}),
              AllOf(HasSubstr("--set: 'optimizer.momentum' belongs to the optimizer lars or "
                              "momentum or rmsprop, not to adam"),
                    Not(HasSubstr("use_nesterov"))));
  EXPECT_THAT(refusal({}, R"({"model": {"name": "mlp"}, "learning_rate": {"name": "constant",
                              "values": [1]}})"),
              HasSubstr("job.json: 'learning_rate.values' belongs to the schedule piecewise"));
  EXPECT_THAT(refusal({"optimizer.momentun=1"}), HasSubstr("did you mean 'optimizer.momentum'?"));
}

TEST(JobOverrides, Null_RemovesAKeyOrASection) {
  const Result result = with({"optimizer.weight_decay=null", "train=null", "data.root=null"});
  EXPECT_EQ(result.job.optimizer.number("weight_decay"), 0);
  EXPECT_EQ(result.job.train.integer("epochs"), 1);
  EXPECT_THAT(result.lines, IsEmpty());
  EXPECT_EQ(with({"train.epochs=3", "train.epochs=null"}).job.train.integer("epochs"), 1);
  EXPECT_THAT(refusal({"train.epoch=null"}),
              AllOf(HasSubstr("unknown key 'train.epoch'"), HasSubstr("'train.epochs'")));
  EXPECT_THAT(refusal({"model.name=null"}), HasSubstr("'model.name' is missing"));
}

TEST(JobOverrides, Section_IsReplacedAsAWhole) {
  const Result result = with({"optimizer={\"name\": \"adam\", \"beta2\": 0.9}"});
  EXPECT_EQ(result.job.optimizer.text("name"), "adam");
  EXPECT_EQ(result.job.optimizer.number("beta2"), 0.9);
  EXPECT_EQ(result.job.optimizer.number("weight_decay"), 0);
  EXPECT_THAT(result.lines, ElementsAre(AllOf(HasSubstr("replaces the whole section"),
                                              HasSubstr("weight_decay"))));
  EXPECT_EQ(with({"optimizer={'name': 'sgd'}", "optimizer.weight_decay=1"})
                .job.optimizer.number("weight_decay"),
            1);
  EXPECT_EQ(with({"optimizer={}"}).job.optimizer.text("name"), "sgd");
  // Below a section an object sets what it names, as in Paddle.
  const std::string amp = R"({"model": {"name": "mlp"}, "data": {"source": "synthetic"},
    "strategy": {"amp": true, "amp_configs": {"incr_ratio": 3}}})";
  EXPECT_EQ(with({"strategy.amp_configs={'decr_ratio': 0.5}"}, amp)
                .job.strategy.number("amp_configs.incr_ratio"),
            3);
}

TEST(JobOverrides, Base_ScalesEverySchedule) {
  for (const char* name : {"constant", "cosine", "polynomial", "piecewise"}) {
    const std::string chosen = std::string("learning_rate.name=") + name;
    EXPECT_EQ(with({chosen, "learning_rate.base=0.2"}).job.schedule.number("base"), 0.2);
  }
}

std::vector<std::string> unused(const std::vector<std::string>& overrides,
                                const JobFacts& facts = {}) {
  std::vector<std::string> all = {"data.source=synthetic"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return unused_options(with(all).job, facts);
}

TEST(UnusedOptions, EachIsNamedWithItsReason) {
  EXPECT_THAT(unused({}, {.world = 2}), IsEmpty());
  EXPECT_THAT(unused({"data.async=false", "data.threads=2", "data.prefetch=3"}),
              ElementsAre(HasSubstr("data.threads, data.prefetch have no effect: data.async")));
  EXPECT_THAT(unused({"data.root=/x", "data.on_damaged=fail"}),
              ElementsAre(HasSubstr("data.root has no effect"),
                          HasSubstr("data.on_damaged has no effect")));
  EXPECT_THAT(unused({"data.augment.random_resized_crop_scale=0.5,1"}),
              ElementsAre(HasSubstr("random_resized_crop is false")));
  EXPECT_THAT(unused({"train.evaluate_every=2"}, {.evaluates = false}),
              ElementsAre(HasSubstr("there are no test data")));
  EXPECT_THAT(unused({"train.max_steps=100"}, {.steps = 99}),
              ElementsAre(HasSubstr("train.max_steps 100 is not reached: 90 epochs are 99 steps")));
  EXPECT_THAT(unused({"train.max_steps=99"}, {.steps = 99}), IsEmpty());
  EXPECT_THAT(unused({"checkpoint.at_end=false", "checkpoint.keep=2"}),
              ElementsAre("checkpoint.keep has no effect: nothing is saved"));
  EXPECT_THAT(unused({"comm.timeout=9"}),
              ElementsAre("comm.timeout has no effect: the job has one rank"));
  EXPECT_THAT(unused({"predict.checkpoint=a", "predict.top_k=3"}),
              ElementsAre(HasSubstr("predict.checkpoint, predict.top_k have no effect")));
  EXPECT_THAT(unused({"predict.input=a", "predict.top_k=3"}), IsEmpty());
  EXPECT_THAT(unused({"train.class_weights=balanced", "data.sampling=balanced"}),
              ElementsAre(HasSubstr("are both balanced")));
  EXPECT_THAT(unused({}, {.data_classes = 4}),
              ElementsAre(HasSubstr("the model has 10 classes, the training data name 4")));
  EXPECT_THAT(unused({"optimizer.weight_decay=0", "optimizer.exclude_from_weight_decay=bias"}),
              ElementsAre(HasSubstr("optimizer.weight_decay is 0")));
  EXPECT_THAT(unused({"optimizer.momentum=0"}),
              ElementsAre("optimizer.use_nesterov has no effect: optimizer.momentum is 0"));
  EXPECT_THAT(unused({"learning_rate.name=constant", "learning_rate.per=epoch"}),
              ElementsAre(HasSubstr("learning_rate.per has no effect")));
}

TEST(UnusedOptions, NamesThatFitNoParameter_AreNamed) {
  Program program;
  program.parameter("conv1.weight", {2}, Init());
  EXPECT_THAT(
      unused_parameter_names(with({"optimizer.exclude_from_weight_decay=conv,bn"}).job, program),
      ElementsAre("optimizer.exclude_from_weight_decay: no parameter matches 'bn'"));
}

}  // namespace
}  // namespace fleet
