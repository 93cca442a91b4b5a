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

Result overridden(const std::vector<std::string>& overrides, const std::string& json = kImageNet) {
  ConfigTree tree = ConfigTree::from_json(json, "job.json");
  Result result;
  result.lines = apply_overrides(tree, overrides);
  result.job = make_job(tree);
  return result;
}

Error refusal(const std::vector<std::string>& overrides, const std::string& json = kImageNet) {
  return thrown_by([&] { overridden(overrides, json); });
}

TEST(JobOverrides, AnotherOptimizer_DropsWhatBelongsToTheFormer) {
  const Result result = overridden({"optimizer.name=adam", "optimizer.beta1=0.8"});
  EXPECT_EQ(result.job.optimizer.text("name"), "adam");
  EXPECT_EQ(result.job.optimizer.number("beta1"), 0.8);
  EXPECT_EQ(result.job.optimizer.number("weight_decay"), 1e-4);  // both have it
  EXPECT_THAT(result.lines, ElementsAre(HasSubstr("optimizer.momentum, optimizer.use_nesterov")));
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
    return thrown_by([&] {
      std::string line;
      shared(ranks, overrides, &line);
    });
  };
  EXPECT_THAT(refusal(5, {"data.global_batch_size=96"}).failure(),
              HasSubstr("is 96, which 5 ranks"));
  EXPECT_THAT(refusal(2, {"data.global_batch_size=96", "data.batch_size=8"}),
              IsUsageError("--set"));
  EXPECT_THAT(refusal(2, {"data.global_batch_size=many"}), IsUsageError("--set"));
}

TEST(JobOverrides, AnotherScheduleModelOrSource_DoesSoToo) {
  const Result result = overridden({"learning_rate.name=cosine", "learning_rate.base=0.2",
                                    "model.name=lenet", "data.source=synthetic"});
  EXPECT_EQ(result.job.schedule.number("base"), 0.2);
  EXPECT_EQ(result.job.schedule.number("warmup_epochs"), 5);
  EXPECT_EQ(result.job.model.integer("num_classes"), 10);
  EXPECT_EQ(result.lines.size(), 3u);
}

TEST(JobOverrides, OtherFormOfASetting_ReplacesTheFiles) {
  const char* const chosen = R"({"model": {"name": "mlp"}, "data": {"threads": "auto",
                                 "prefetch": "auto"}, "train": {"class_weights": "balanced"}})";
  const Job given =
      overridden({"data.threads=3", "data.prefetch=2", "train.class_weights=[1,2]"}, chosen).job;
  EXPECT_FALSE(given.data.boolean("auto.threads"));
  EXPECT_EQ(given.data.integer("threads"), 3);
  EXPECT_FALSE(given.data.boolean("auto.prefetch"));
  EXPECT_EQ(given.train.text("class_weights.rule"), "");
  const char* const fixed = R"({"model": {"name": "mlp"}, "data": {"threads": 3},
                                "train": {"class_weights": [1, 2]}})";
  const Job automatic =
      overridden({"data.threads=auto", "train.class_weights=balanced"}, fixed).job;
  EXPECT_TRUE(automatic.data.boolean("auto.threads"));
  EXPECT_FALSE(automatic.data.given("threads"));
  EXPECT_THAT(automatic.train.numbers("class_weights.values"), ::testing::IsEmpty());
}

// As a shell leaves them of 'train.metrics="f1"'.
TEST(JobOverrides, InnerQuotes_AreNotPartOfTheText) {
  const Job job = overridden({R"(train.metrics="macro_f1")", R"(train.unfreeze_at="500 steps")",
                              R"(train.name="a \"b\"")", R"(train.output=say "x")"})
                      .job;
  EXPECT_THAT(job.train.texts("metrics"), ::testing::ElementsAre("macro_f1"));
  EXPECT_THAT(job.train.texts("unfreeze_at"), ::testing::ElementsAre("500 steps"));
  EXPECT_EQ(job.train.text("name"), "a \"b\"");
  EXPECT_EQ(job.train.text("output"), "say \"x\"");
}

TEST(JobOverrides, WrongClassWeights_AreNamedByTheKeyThatIsGiven) {
  for (const char* wrong : {"train.class_weights=balansed", R"(train.class_weights=[1,"a"])",
                            "train.class_weights=1,a"}) {
    EXPECT_EQ(refusal({wrong}).failure().find("'train.class_weights'"), 0u) << wrong;
  }
}

TEST(JobOverrides, KeyThatBelongsToAnother_IsRefusedByTheCommandLineAndTheFile) {
  const Error error = refusal({"optimizer.name=adam", "optimizer.momentum=0.8"});
  EXPECT_THAT(error, IsUsageError("--set"));
  EXPECT_THAT(error.failure(),
              AllOf(HasSubstr("'optimizer.momentum'"), HasSubstr("lars or momentum or"),
                    HasSubstr(", not"), HasSubstr("adam")));
  EXPECT_THAT(refusal({}, R"({"model": {"name": "mlp"}, "learning_rate": {"name": "constant",
                              "values": [1]}})"),
              IsUsageError("job.json"));
  EXPECT_THAT(refusal({"optimizer.momentun=1"}), Advises("did you mean 'optimizer.momentum'?"));
  EXPECT_THAT(refusal({"train.keep_best=loss"}), Advises("did you mean 'checkpoint.keep_best'?"));
}

TEST(JobOverrides, Null_RemovesAKeyOrASection) {
  const Result result = overridden({"optimizer.weight_decay=null", "train=null", "data.root=null"});
  EXPECT_EQ(result.job.optimizer.number("weight_decay"), 0);
  EXPECT_EQ(result.job.train.integer("epochs"), 1);
  EXPECT_THAT(result.lines, IsEmpty());
  EXPECT_EQ(overridden({"train.epochs=3", "train.epochs=null"}).job.train.integer("epochs"), 1);
  EXPECT_THAT(refusal({"train.epoch=null"}), Advises("did you mean 'train.epochs'?"));
  EXPECT_EQ(refusal({"model.name=null"}).failure(), "the required key 'model.name' is missing");
}

TEST(JobOverrides, MistypedSection_IsNamedInsteadOfTheKeyThatIsMissing) {
  const auto refused = [](const char* json) {
    return thrown_by([&] { make_job(ConfigTree::from_json(json, "job.json")); });
  };
  const Error typo = refused(R"({"modle": {"name": "lenet"}})");
  EXPECT_EQ(typo.failure(), "unknown section 'modle'");
  EXPECT_THAT(typo, Advises("did you mean 'model'?"));
  const Error text = refused(R"({"model": "lenet"})");
  EXPECT_EQ(text.failure(), "'model' must be an object");
  EXPECT_EQ(text.next(), R"(write {"name": "lenet"})");
}

TEST(JobOverrides, Section_IsReplacedAsAWhole) {
  const Result result = overridden({"optimizer={\"name\": \"adam\", \"beta2\": 0.9}"});
  EXPECT_EQ(result.job.optimizer.text("name"), "adam");
  EXPECT_EQ(result.job.optimizer.number("beta2"), 0.9);
  EXPECT_EQ(result.job.optimizer.number("weight_decay"), 0);
  EXPECT_THAT(result.lines, ElementsAre(HasSubstr("replaces the whole section and drops")));
  EXPECT_EQ(overridden({"optimizer={'name': 'sgd'}", "optimizer.weight_decay=1"})
                .job.optimizer.number("weight_decay"),
            1);
  EXPECT_EQ(overridden({"optimizer={}"}).job.optimizer.text("name"), "sgd");
  // Below a section an object sets what it names, as in Paddle.
  const std::string amp = R"({"model": {"name": "mlp"}, "data": {"source": "synthetic"},
    "strategy": {"amp": true, "amp_configs": {"incr_ratio": 3}}})";
  EXPECT_EQ(overridden({"strategy.amp_configs={'decr_ratio': 0.5}"}, amp)
                .job.strategy.number("amp_configs.incr_ratio"),
            3);
}

TEST(JobOverrides, Base_ScalesEverySchedule) {
  for (const char* name : {"constant", "cosine", "polynomial", "piecewise"}) {
    const std::string chosen = std::string("learning_rate.name=") + name;
    EXPECT_EQ(overridden({chosen, "learning_rate.base=0.2"}).job.schedule.number("base"), 0.2);
  }
}

std::vector<std::string> unused(const std::vector<std::string>& overrides,
                                const JobFacts& facts = {}) {
  std::vector<std::string> all = {"data.source=synthetic"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return unused_options(overridden(all).job, facts);
}

TEST(UnusedOptions, EachIsNamed) {
  const auto lines = [](const std::vector<std::string>& overrides, const JobFacts& facts = {}) {
    return unused(overrides, facts).size();
  };
  EXPECT_THAT(unused({}, {.world = 2}), IsEmpty());
  EXPECT_THAT(unused({"data.async=false", "data.threads=2", "data.prefetch=3"}),
              ElementsAre(HasSubstr("data.threads, data.prefetch have no effect")));
  EXPECT_EQ(lines({"data.root=/x", "data.on_damaged=fail"}), 2u);
  EXPECT_EQ(lines({"data.augment.random_resized_crop_scale=0.5,1"}), 1u);
  EXPECT_EQ(lines({"data.pass_order=pillow12"}), 1u);
  EXPECT_THAT(unused({"data.pass_order=pillow12", "data.augment.interpolation=random"}), IsEmpty());
  EXPECT_EQ(lines({"train.evaluate_every=2"}, {.evaluates = false}), 1u);
  EXPECT_THAT(unused({"train.max_steps=100"}, {.steps = 99}),
              ElementsAre(HasSubstr("train.max_steps 100 is not reached")));
  EXPECT_THAT(unused({"train.max_steps=99"}, {.steps = 99}), IsEmpty());
  EXPECT_THAT(unused({"checkpoint.at_end=false", "checkpoint.keep=2"}),
              ElementsAre(HasSubstr("checkpoint.keep has no effect")));
  EXPECT_THAT(unused({"comm.timeout=9"}), ElementsAre(HasSubstr("comm.timeout has no effect")));
  EXPECT_EQ(lines({"predict.checkpoint=a", "predict.top_k=3"}), 1u);
  EXPECT_THAT(unused({"predict.input=a", "predict.top_k=3"}), IsEmpty());
  EXPECT_EQ(lines({"train.class_weights=balanced", "data.sampling=balanced"}), 1u);
  EXPECT_EQ(lines({}, {.data_classes = 4}), 1u);
  EXPECT_EQ(lines({"optimizer.weight_decay=0", "optimizer.exclude_from_weight_decay=bias"}), 1u);
  EXPECT_EQ(lines({"optimizer.weight_decay=0", "optimizer.weight_decay_exclude_1d=true"}), 1u);
  const auto excluded = [&](const char* group) {
    return unused({"optimizer.weight_decay=0", "optimizer.exclude_from_weight_decay=bias",
                   std::string("optimizer.groups=['fc*: ") + group + "']"});
  };
  EXPECT_THAT(excluded("weight_decay=0.1"), IsEmpty());
  EXPECT_THAT(excluded("rate=0.1"),
              ElementsAre(AllOf(HasSubstr("optimizer.exclude_from_weight_decay has no effect"),
                                HasSubstr("optimizer.weight_decay is 0"))));
  EXPECT_THAT(unused({"optimizer.momentum=0"}),
              ElementsAre("optimizer.use_nesterov has no effect: optimizer.momentum is 0"));
  EXPECT_EQ(lines({"learning_rate.name=constant", "learning_rate.per=epoch"}), 1u);
}

TEST(UnusedOptions, NamesThatFitNoParameter_AreNamed) {
  Program program;
  program.parameter("conv1.weight", {2}, Init());
  EXPECT_THAT(unused_parameter_names(
                  overridden({"optimizer.exclude_from_weight_decay=conv,bn"}).job, program),
              ElementsAre("optimizer.exclude_from_weight_decay: no parameter matches 'bn'"));
}

}  // namespace
}  // namespace fleet
