// Models of clicks, and the task click.
#include <gmock/gmock.h>

#include "models/model.h"
#include "models/task.h"
#include "ops/embedding.h"
#include "tests/errors.h"

namespace fleet {
namespace {

// Columns of Criteo's data: 13 numbers, and 26 slots of one id.
std::vector<Column> click_columns(bool dense = true) {
  std::vector<Column> columns = {{"label", DType::kFloat32, {1}}, {"ids", DType::kInt64, {26, 1}}};
  if (dense) columns.push_back({"dense", DType::kFloat32, {13}});
  return columns;
}

TrainingOptions options_of(const std::string& model, const std::string& keys = "{}") {
  return {.model = model,
          .model_settings =
              ConfigTree::from_json(keys, "test").validate(model_registry().get(model).schema),
          .task = "click",
          .task_settings = TrainingOptions::default_task_settings("click"),
          .batch = 4,
          .columns = click_columns()};
}

struct Parameters {
  int64_t dense = 0, tables = 0;  // numbers
};

Parameters parameters_of(const TrainingOptions& options) {
  Program program;
  build_training(program, options);
  Parameters parameters;
  for (const VarId id : program.parameters()) {
    bool table = false;
    for (const Op& op : program.ops()) table |= op.attributes.has(kTable) && op.inputs[1] == id;
    (table ? parameters.tables : parameters.dense) += program.var(id).shape.elements();
  }
  return parameters;
}

// PaddleRec's config_bigdata.
TEST(ClickModels, DefaultSizes_HavePaddleRecsParameters) {
  const Parameters wide_deep = parameters_of(options_of("wide_deep"));
  EXPECT_EQ(wide_deep.dense, 295375);
  EXPECT_EQ(wide_deep.tables, 1000001 * 9);
  const Parameters deepfm = parameters_of(options_of("deepfm"));
  EXPECT_EQ(deepfm.dense, 462132);
  EXPECT_EQ(deepfm.tables, 1000001 * 10);
  const Parameters dlrm = parameters_of(options_of("dlrm"));
  // 13-512-256-64-16 and 367-512-256-1.
  EXPECT_EQ(dlrm.dense, 7168 + 131328 + 16448 + 1040 + 188416 + 131328 + 257);
  EXPECT_EQ(dlrm.tables, 1000001 * 16);
}

TEST(ClickModels, DataWithoutNumbers_NeedAKey) {
  for (const char* model : {"wide_deep", "deepfm"}) {
    TrainingOptions options = options_of(model, R"({"dense": false})");
    options.columns = click_columns(false);
    EXPECT_GT(parameters_of(options).dense, 0) << model;
    options.model_settings = options_of(model).model_settings;
    EXPECT_THROW(parameters_of(options), MissingColumn) << model;
  }
}

TEST(ClickModels, EmptyHiddenLayer_IsRefused) {
  EXPECT_THAT(thrown_by([] { parameters_of(options_of("deepfm", R"({"hidden": [4, 0]})")); }),
              IsUsageError("model.hidden"));
  EXPECT_THAT(thrown_by([] { parameters_of(options_of("dlrm", R"({"top": [0]})")); }),
              IsUsageError("model.top"));
}

TEST(ClickTask, Metrics_AreTheLogLossAndThoseNamed) {
  const TrainingOptions options = options_of("deepfm");
  const MetricTable table = task_registry().get("click").metrics({options});
  ASSERT_EQ(table.metrics.size(), 3u);
  EXPECT_EQ(table.metrics[0].name, "loss");
  EXPECT_EQ(table.headline, "auc");
  EXPECT_EQ(table.metrics[2].name, "calibration");
}

TEST(ClickTask, Probabilities_AreStable) {
  const TaskDef& task = task_registry().get("click");
  double probability = 0;
  for (const auto& [logit, wanted] :
       {std::pair(0.0f, 0.5), {-1000.0f, 0.0}, {1000.0f, 1.0}, {1.0f, 0.7310585786300049}}) {
    task.probabilities(std::span(&logit, 1), std::span(&probability, 1));
    EXPECT_DOUBLE_EQ(probability, wanted);
  }
}

TEST(ClickTask, LabelsOfClasses_AreRefused) {
  TrainingOptions options = options_of("deepfm");
  options.columns[0] = {"label", DType::kInt64, {}};
  EXPECT_THAT(thrown_by([&] { parameters_of(options); }), IsUsageError("data.source"));
  options.columns.erase(options.columns.begin());
  EXPECT_THROW(parameters_of(options), MissingColumn);
}

TEST(ClickTask, SeveralLogits_AreRefused) {
  TrainingOptions options = options_of("mlp", R"({"num_classes": 2})");
  options.columns.push_back({"image", DType::kFloat32, {1, 2, 2}});
  EXPECT_THAT(thrown_by([&] { parameters_of(options); }), IsUsageError("model 'mlp'"));
}

}  // namespace
}  // namespace fleet
