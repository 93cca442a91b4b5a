// Keys of a job file that reach operations: train.ignore_index, train.numeric_stable_mode,
// model.use_cudnn, model.winograd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "exec/backend.h"
#include "tests/captured_log.h"
#include "tests/errors.h"
#include "train/job.h"
#include "train/session.h"

namespace fleet {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Job job(const std::string& model, const std::vector<std::string>& overrides) {
  ConfigTree tree = ConfigTree::from_json(R"({
    "model": {"name": ")" + model + R"("},
    "data": {"source": "synthetic", "batch_size": 2}
  })",
                                          "test");
  apply_overrides(tree, overrides);
  return make_job(tree);
}

Program program_of(const std::string& model, const std::vector<std::string>& overrides,
                   const std::string& backend = "cpu") {
  ProgramOptions options{.columns = image_columns({3, 224, 224})};
  options.backend = backend;
  return build_program(job(model, overrides), options).program;
}

// Before any data are opened: by --check, too.
TEST(JobOptions, MeanOrStdAboveOne_IsRefused) {
  for (const std::string key : {"data.mean", "data.std"}) {
    EXPECT_THAT(thrown_by([&] { job("mobilenet_v1", {key + "=[0.5, 58.4, 0.25]"}); }),
                IsUsageError(key));
  }
}

// All keys of all sources that name a file or folder.
TEST(JobOptions, PathsBelowTheHomeFolder_AreExpanded) {
  const std::string home = ::getenv("HOME") ? ::getenv("HOME") : "/";
  ::setenv("HOME", "/h/me", 1);
  const auto settings = [](const std::string& source, const std::vector<std::string>& keys) {
    std::vector<std::string> overrides = {"data.source=" + source};
    for (const std::string& key : keys) overrides.push_back(key + "=~/x");
    return job("lenet", overrides).settings;
  };
  const std::vector<std::pair<std::string, std::vector<std::string>>> kTexts = {
      {"idx", {"data.train.images", "data.train.labels", "data.test.images", "data.test.labels"}},
      {"image_folder", {"data.root", "data.train.folder", "data.test.folder"}},
      {"image_list", {"data.train.list", "data.test.list"}},
      {"synthetic",
       {"train.output", "checkpoint.resume", "checkpoint.weights", "predict.checkpoint",
        "predict.output"}}};
  for (const auto& [source, keys] : kTexts) {
    const Settings read = settings(source, keys);
    for (const std::string& key : keys) EXPECT_EQ(read.text(key), "/h/me/x") << key;
  }
  const std::vector<std::string> shards = {"data.train.shards", "data.test.shards"};
  for (const std::string& key : shards) {
    EXPECT_THAT(settings("tar", shards).texts(key), testing::ElementsAre("/h/me/x"));
  }
  EXPECT_THAT(settings("synthetic", {"predict.input"}).texts("predict.input"),
              testing::ElementsAre("/h/me/x"));
  EXPECT_EQ(settings("synthetic", {"train.name"}).text("train.name"), "~/x");
  ::setenv("HOME", home.c_str(), 1);
}

TEST(JobOptions, IgnoreIndex_IsThatOfTheLossAndItsGradient) {
  for (const int64_t index : {int64_t{-100}, int64_t{255}}) {
    const Program program =
        program_of("mobilenet_v1", {"train.ignore_index=" + std::to_string(index)});
    int found = 0;
    for (const Op& op : program.ops()) {
      if (!op.type().starts_with("softmax_with_cross_entropy")) continue;
      EXPECT_EQ(op.attributes.integer("ignore_index"), index);
      ++found;
    }
    EXPECT_EQ(found, 3);  // training, its gradient, evaluation
  }
}

TEST(JobOptions, UseCudnn_IsOffWhereThereIsAKernelOfOurOwn) {
  const Program as_it_is = program_of("mobilenet_v1", {});
  for (const Op& op : as_it_is.ops()) {
    if (!op.attributes.has("use_cudnn")) continue;
    EXPECT_TRUE(op.attributes.boolean("use_cudnn"));
  }
  const Program own = program_of("mobilenet_v1", {"model.use_cudnn=false"});
  int depthwise = 0, others = 0;
  for (const Op& op : own.ops()) {
    if (op.type() != "conv2d") continue;
    const bool is_depthwise = op.attributes.integer("groups") > 1;
    EXPECT_EQ(op.attributes.boolean("use_cudnn"), !is_depthwise);
    ++(is_depthwise ? depthwise : others);
  }
  EXPECT_EQ(depthwise, 2 * 13);  // training and evaluation
  EXPECT_EQ(others, 2 * 14);
}

TEST(JobOptions, Winograd_CanBeSwitchedOff) {
  for (const bool wanted : {true, false}) {
    const Program program =
        program_of("resnet18", {std::string("model.winograd=") + (wanted ? "true" : "false")});
    int found = 0;
    for (const Op& op : program.ops()) {
      if (!op.type().starts_with("conv2d")) continue;
      EXPECT_EQ(op.attributes.boolean("winograd"), wanted);
      ++found;
    }
    EXPECT_EQ(found, 2 * 20 + 20 + 19);  // training, evaluation; gradients: none of the image
  }
}

TEST(JobOptions, ChoicesWithoutEffect_AreSaid) {
  const auto line = [](const std::string& choice, const std::string& backend) {
    return captured_log([&] { program_of("lenet", {choice, "model.num_classes=10"}, backend); });
  };
  EXPECT_THAT(line("model.use_cudnn=false", "cpu"), HasSubstr("model.use_cudnn has no effect"));
  if (has_backend("cuda")) {
    EXPECT_THAT(line("model.winograd=false", "cuda"), HasSubstr("model.winograd has no effect"));
  }
  EXPECT_THAT(line("train.numeric_stable_mode=false", "cpu"),
              HasSubstr("train.numeric_stable_mode has no effect"));
  EXPECT_THAT(line("train.numeric_stable_mode=true", "cpu"),
              AllOf(Not(HasSubstr("numeric_stable_mode")), Not(HasSubstr("use_cudnn"))));
}

}  // namespace
}  // namespace fleet
