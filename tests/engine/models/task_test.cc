// Tasks: what they feed, which outputs of a model they need, and their metrics.
#include "models/task.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "models/model.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A network of texts: an embedding that is its own head.
FLEET_MODEL(test_text_net) {
  def.help = "a test";
  def.inputs = {"input_ids"};
  def.outputs = {"hidden", "head"};
  def.schema = common_model_schema();
  def.build = [](Network& network, const NamedVars& inputs, const Settings&) -> NamedVars {
    const Shape& ids = network.shape(inputs.at("input_ids"));
    const VarId head = network.parameter("head", {5, 4}, init::uniform(1));
    const VarId rows = network.parameter("rows", {ids[0], ids[1], 4}, init::uniform(1));
    return {{"hidden", network.relu(rows)}, {"head", head}};
  };
}

// A network whose second head has a column of its own, and an output next to it.
FLEET_MODEL(test_two_heads) {
  def.help = "a test";
  def.inputs = {"image"};
  def.schema = model_schema(3);
  def.ports = [](const Settings&) {
    return ModelPorts{{"image"}, {"logits", "rows"}, {{"rows", {{"places"}, {"rows_bias"}}}}};
  };
  def.build = [](Network& network, const NamedVars& inputs, const Settings&) -> NamedVars {
    const VarId x = network.flatten(inputs.at("image"));
    NamedVars outputs = {{"logits", network.linear("fc", x, {.features = 3})}};
    if (!network.wants("rows")) return outputs;
    EXPECT_NE(find_var(inputs, "places"), kNoVar);
    outputs["rows"] = network.linear("rows", x, {.features = 2});
    outputs["rows_bias"] = network.program().find("rows.bias");
    return outputs;
  };
}

// A task whose evaluations read an output that it does not train.
FLEET_TASK(test_collecting) {
  def.help = "a test";
  def.outputs = {"logits"};
  def.collector = [](const TaskContext&) -> std::unique_ptr<EvaluationCollector> {
    struct Collector : EvaluationCollector {
      std::vector<std::string> outputs() const override { return {"rows"}; }
      void add(const Rows&) override {}
      void finish(RankExchange&) override {}
    };
    return std::make_unique<Collector>();
  };
}

Settings settings_of(const Schema& schema, const std::string& json = "{}") {
  return ConfigTree::from_json(json, "test").validate(schema);
}

TrainingOptions options_of(const std::string& task, const std::string& model,
                           const std::string& json, std::vector<Column> columns) {
  return {.model = model,
          .model_settings = settings_of(model_registry().get(model).schema, json),
          .task = task,
          .task_settings = TrainingOptions::default_task_settings(task),
          .batch = 2,
          .columns = std::move(columns)};
}

const std::vector<Column> kLabels = {{"image", DType::kFloat32, {1, 8, 8}},
                                     {"targets", DType::kFloat32, {3}}};

std::vector<std::string> feeds_of(const Training& training) {
  std::vector<std::string> names;
  for (const TrainingFeed& feed : training.feeds) names.push_back(feed.name);
  return names;
}

TEST(Task, ImageClassification_FeedsInTheOrderOfItsVariables) {
  Program program;
  TrainingOptions options =
      options_of("image_classification", "mlp", "{}", image_columns({1, 8, 8}));
  options.mixed_labels = options.class_weights = true;
  const Training training = build_training(program, options);
  EXPECT_THAT(feeds_of(training),
              ElementsAre("image", "label", "weight", "sample_key", "other_label", "own_share",
                          "learning_rate", "class_weights"));
  EXPECT_EQ(training.metrics->headline, "acc1");
}

TEST(Task, ModelOfAnotherKind_NamesTheTasksThatFit) {
  const Error text = thrown_by([] {
    check_task_of_model(
        options_of("image_classification", "llama", "{}", image_columns({3, 8, 8})));
  });
  EXPECT_STREQ(text.what(),
               "model 'llama': it is a language model, and the task image_classification needs a "
               "classifier; set task to causal_lm, or choose another model, such as "
               "convnext_atto");
  const Error images =
      thrown_by([] { check_task_of_model(options_of("causal_lm", "lenet", "{}", {})); });
  EXPECT_THAT(images, IsUsageError("model 'lenet'"));
  EXPECT_THAT(images.next(), ::testing::HasSubstr("such as gpt2"));
  EXPECT_THAT(images.next(), ::testing::HasSubstr("image_classification or multi_label"));
}

TEST(Task, MultiLabel_FeedsTargets) {
  Program program;
  const Training training =
      build_training(program, options_of("multi_label", "mlp", R"({"num_classes": 3})", kLabels));
  EXPECT_THAT(feeds_of(training),
              ElementsAre("image", "targets", "weight", "sample_key", "learning_rate"));
  EXPECT_EQ(training.collected, (std::vector<VarId>{training.evaluate_output("logits")}));
}

TEST(Task, MultiLabel_OfOtherClasses_IsRefused) {
  Program program;
  EXPECT_THAT(thrown_by([&] {
                build_training(program,
                               options_of("multi_label", "mlp", R"({"num_classes": 4})", kLabels));
              }),
              IsUsageError("model.num_classes"));
}

TEST(Task, DataWithoutAColumn_AreRefusedByName) {
  Program program;
  const std::string text = usage_failure([&] {
    build_training(program, options_of("multi_label", "mlp", R"({"num_classes": 3})",
                                       image_columns({1, 8, 8})));
  });
  EXPECT_THAT(text, AllOf(HasSubstr("targets"), HasSubstr("multi_label")));
}

TEST(Task, ModelWithoutAnOutput_IsRefusedByName) {
  Program program;
  const std::string text = usage_failure([&] {
    build_training(program, options_of("causal_lm", "mlp", "{}", image_columns({1, 8, 8})));
  });
  EXPECT_THAT(text, AllOf(HasSubstr("'mlp'"), HasSubstr("needs a language model")));
}

TEST(Task, CausalLm_FeedsTheTextAndItsDenominator) {
  if (!op_registry().find("linear_cross_entropy")) GTEST_SKIP() << "no linear_cross_entropy";
  Program program;
  std::vector<Column> columns;
  for (const char* name : {"input_ids", "labels"}) columns.push_back({name, DType::kInt64, {6}});
  columns.push_back({"loss_weight", DType::kFloat32, {6}});
  const Training training =
      build_training(program, options_of("causal_lm", "test_text_net", "{}", columns));
  EXPECT_THAT(feeds_of(training), ElementsAre("input_ids", "labels", "loss_weight", "sample_key",
                                              "learning_rate", "denominator"));
  EXPECT_EQ(program.var(training.feed("labels")).shape, (Shape{2, 6}));
  EXPECT_EQ(program.var(training.loss).shape, (Shape{1}));
}

TEST(Task, UnwantedOutput_HasNeitherParametersNorColumns) {
  TrainingOptions options =
      options_of("image_classification", "test_two_heads", "{}", image_columns({1, 2, 2}));
  Program program;
  EXPECT_EQ(build_training(program, options).feed("places"), kNoVar);
  EXPECT_EQ(program.find("rows.weight"), kNoVar);

  options.more_outputs = {"rows", "rows_bias"};
  Program missing, whole;
  EXPECT_THAT(thrown_by([&] { build_training(missing, options); }).failure(), HasSubstr("places"));
  options.columns.push_back({"places", DType::kInt64, {4}});
  const Training training = build_training(whole, options);
  EXPECT_EQ(whole.var(training.feed("places")).shape, (Shape{2, 4}));
  EXPECT_NE(training.output("rows_bias"), kNoVar);
  EXPECT_NE(training.evaluate_output("rows"), kNoVar);
}

TEST(Task, OutputsOfTheCollector_AreWanted) {
  const TrainingOptions options =
      options_of("test_collecting", "test_two_heads", "{}", image_columns({1, 2, 2}));
  EXPECT_THAT(wanted_outputs({options}), ElementsAre("logits", "rows"));
}

TEST(Task, OutputNextToAnUnwantedOne_IsRefused) {
  TrainingOptions options =
      options_of("image_classification", "test_two_heads", "{}", image_columns({1, 2, 2}));
  options.more_outputs = {"rows_bias"};
  EXPECT_THAT(thrown_by([&] { check_task_of_model(options); }),
              IsUsageError("model 'test_two_heads'"));
}

TEST(Task, Perplexity_IsTheExponentialOfTheMeanLoss) {
  const TrainingOptions options = {};
  const auto table =
      std::make_shared<MetricTable>(task_registry().get("causal_lm").metrics(TaskContext{options}));
  MetricSums one(table), other(table);
  one.sums() = {6, 2};
  other.sums() = {0, 4};
  one.add(other);
  EXPECT_DOUBLE_EQ(one.loss(), 1);
  EXPECT_DOUBLE_EQ(one.value("perplexity"), std::exp(1.0));
  EXPECT_DOUBLE_EQ(one.items(), 6);
  EXPECT_EQ(one.text(), "loss: 1.00000, perplexity: 2.718");
}

// A rank without a weighted token in evaluation, or no data at all.
TEST(Task, MetricWithoutWeight_IsZero) {
  const TrainingOptions options = {};
  const auto table =
      std::make_shared<MetricTable>(task_registry().get("causal_lm").metrics(TaskContext{options}));
  EXPECT_EQ(MetricSums(table).value("perplexity"), 0);
}

TEST(Task, EachName_HasHelpAndALoss) {
  for (const std::string& name : task_registry().names()) {
    const TaskDef& def = task_registry().get(name);
    EXPECT_FALSE(def.help.empty()) << name;
    EXPECT_FALSE(def.outputs.empty()) << name;
  }
}

}  // namespace
}  // namespace fleet
