#include "train/initial_weights.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "models/model.h"
#include "models/training.h"
#include "tensor/float16.h"
#include "tensor/host.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

HostTensor floats(const Shape& shape, float value) {
  HostTensor tensor{DType::kFloat32, shape, {}};
  tensor.data = TensorBytes(shape.elements() * sizeof(float));
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const float element = value + static_cast<float>(i) / 8;
    std::memcpy(tensor.data.data() + i * sizeof(float), &element, sizeof element);
  }
  return tensor;
}

// An mlp of four inputs, two hidden units and three classes, and a file of weights for it.
class InitialWeights : public ::testing::Test {
 protected:
  InitialWeights() {
    const Settings settings = ConfigTree::from_json(R"({"hidden": [2], "num_classes": 3})", "test")
                                  .validate(model_registry().get("mlp").schema);
    training_ = build_training(program_, {.model = "mlp",
                                          .model_settings = settings,
                                          .batch = 1,
                                          .columns = image_columns({1, 2, 2})});
    executor_ = std::make_unique<Executor>(
        plan_program(program_, {training_.evaluate_output("logits")}), device_, nullptr);
    executor_->initialize(5);
    for (VarId id = 0; id < program_.var_count(); ++id) {
      const Var& var = program_.var(id);
      if (var.kind != VarKind::kParameter) continue;
      names_.push_back(var.name);
      file_.tensors[var.name] = floats(var.shape, 1);
    }
    head_ = names_.back().substr(0, names_.back().rfind('.'));
  }
  ~InitialWeights() override { std::filesystem::remove(path_); }

  std::vector<std::string> load(const WeightsOptions& options = {}) {
    write_safetensors(path_, file_);
    return load_weights(path_, options, *executor_);
  }
  std::string failure(const WeightsOptions& options = {}) {
    return usage_failure([&] { load(options); });
  }
  void prefix_names(const std::string& prefix) {
    TensorFile renamed;
    for (const auto& [name, tensor] : file_.tensors) renamed.tensors[prefix + name] = tensor;
    file_ = renamed;
  }
  std::vector<float> values(const std::string& name) {
    return executor_->values<float>(executor_->program().find(name));
  }
  // As they were initialised.
  void expect_fresh(const std::string& name) {
    Executor fresh(plan_program(program_, {training_.evaluate_output("logits")}), device_, nullptr);
    fresh.initialize(5);
    EXPECT_EQ(values(name), fresh.values<float>(fresh.program().find(name))) << name;
  }

  Program program_;
  Training training_;
  HostDevice device_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::string> names_;  // of the parameters
  std::string head_;                // the last layer's
  TensorFile file_;
  std::string path_ =
      ::testing::TempDir() + "/initial_" + std::to_string(::getpid()) + ".safetensors";
};

TEST_F(InitialWeights, WholeFile_IsTaken) {
  EXPECT_THAT(load(), IsEmpty());
  EXPECT_EQ(values(head_ + ".bias"), std::vector<float>({1, 1.125, 1.25}));
}

// Outside training nothing else would give it a value.
TEST_F(InitialWeights, CompleteWeights_AreRequiredWhateverIsSkipped) {
  const WeightsOptions complete{.skip = {head_ + ".*", "extra.*"}, .complete = true};
  file_.tensors["extra.bias"] = floats({3}, 1);
  EXPECT_THAT(load(complete), IsEmpty());
  EXPECT_EQ(values(head_ + ".bias"), std::vector<float>({1, 1.125, 1.25}));
  file_.tensors.erase(head_ + ".bias");
  EXPECT_THAT(failure(complete), AllOf(HasSubstr("has no '" + head_ + ".bias'"),
                                       Not(HasSubstr("checkpoint.weights_skip"))));
  file_.tensors[head_ + ".bias"] = floats({4}, 1);
  EXPECT_THAT(failure(complete), HasSubstr("'" + head_ + ".bias' is [4], the model's is [3]"));
}

TEST_F(InitialWeights, PrefixesOfWrappers_AreLeftOut) {
  prefix_names("module._orig_mod.");
  EXPECT_THAT(load(), ElementsAre(HasSubstr("'module._orig_mod.'")));
  EXPECT_EQ(values(head_ + ".bias"), std::vector<float>({1, 1.125, 1.25}));
}

// Of any wrapper; what is skipped need not have it.
TEST_F(InitialWeights, PrefixOfAllNamesThatAreNotSkipped_IsLeftOut) {
  prefix_names("net.inner.");
  file_.tensors["criterion.weight"] = floats({2}, 0);
  EXPECT_THAT(load({.skip = {"criterion.*"}}), ElementsAre(HasSubstr("'net.inner.'")));
  EXPECT_EQ(values(head_ + ".bias"), std::vector<float>({1, 1.125, 1.25}));
  // A pattern may name a parameter with the prefix or without.
  for (const std::string start : {"", "net.inner."}) {
    executor_->initialize(5);
    EXPECT_THAT(load({.skip = {"criterion.*", start + head_ + ".*"}}), SizeIs(2));
    expect_fresh(head_ + ".bias");
    EXPECT_EQ(values(names_.front())[0], 1);
  }
}

TEST_F(InitialWeights, PrefixOfMostNames_IsNamedWithTheOthers) {
  prefix_names("net.");
  file_.tensors["criterion.weight"] = floats({2}, 0);
  EXPECT_THAT(thrown_by([&] { load(); }).next(),
              AllOf(HasSubstr("'net.'"), HasSubstr("'criterion.*'")));
}

// Training would begin with random weights.
TEST_F(InitialWeights, PatternsThatLeaveNothing_AreRefusedWithThePrefix) {
  prefix_names("net.");
  const Error error = thrown_by([&] { load({.skip = {"*"}}); });
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr(path_), HasSubstr("weights_skip"), HasSubstr("'net.'")));
}

TEST_F(InitialWeights, TypesThatNoParameterHas_AreIgnoredOrRefusedByName) {
  file_.foreign = {{"attn_mask", "BOOL"}, {"scale", "F8_E4M3"}};
  const auto load_file = [&](const WeightsOptions& options) {
    return load_weights(file_, path_, options, *executor_);
  };
  EXPECT_THAT(load_file({}),
              ElementsAre(AllOf(HasSubstr("attn_mask (BOOL)"), HasSubstr("scale (F8_E4M3)"))));
  EXPECT_THAT(load_file({.skip = {"attn_mask", "scale"}}), IsEmpty());
  EXPECT_THAT(load_file({.complete = true}), SizeIs(1));
  file_.tensors.erase(head_ + ".bias");
  file_.foreign = {{head_ + ".bias", "I8"}};
  const Error error = thrown_by([&] { load_file({}); });
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_THAT(error.failure(), AllOf(HasSubstr("'" + head_ + ".bias'"), HasSubstr("I8")));
  EXPECT_THAT(error.next(), HasSubstr("checkpoint.weights_skip: '" + head_ + ".*'"));
  EXPECT_THAT(load_file({.skip = {head_ + ".bias"}}), SizeIs(1));
}

TEST_F(InitialWeights, PrefixOfSomeNames_IsPartOfThem) {
  file_.tensors["module.more"] = floats({1}, 0);
  EXPECT_THAT(failure(), HasSubstr("has 'module.more'"));
}

TEST_F(InitialWeights, OtherFloats_AreConverted) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    TensorFile other;
    for (const auto& [name, tensor] : file_.tensors) {
      other.tensors[name] = converted(tensor, dtype);
      EXPECT_EQ(other.tensors[name].data.size(), tensor.shape.elements() * size_of(dtype));
    }
    executor_->initialize(5);
    std::swap(file_, other);
    EXPECT_THAT(load(), ElementsAre(std::string("converted from ") + name_of(dtype)));
    EXPECT_EQ(values(head_ + ".bias"), std::vector<float>({1, 1.125, 1.25}));
    std::swap(file_, other);
  }
}

TEST_F(InitialWeights, AnotherHead_IsRefusedWithWhatToDo) {
  file_.tensors[head_ + ".weight"] = floats({7, 2}, 0);
  file_.tensors[head_ + ".bias"] = floats({7}, 0);
  const Error error = thrown_by([&] { load(); });
  EXPECT_EQ(error.failure(),
            "'" + head_ + ".weight' is [7, 2], the model's is [3, 2] (and 1 more)");
  EXPECT_EQ(error.next(), "to initialize these, add to checkpoint.weights_skip: '" + head_ + ".*'");
  expect_fresh(names_.front());  // nothing is half done
}

TEST_F(InitialWeights, SkippedHead_KeepsItsInitialValues) {
  file_.tensors[head_ + ".weight"] = floats({7, 2}, 0);
  file_.tensors.erase(head_ + ".bias");
  file_.tensors["head.more"] = floats({1}, 0);
  EXPECT_THAT(load({.skip = {head_ + ".*", "head.*"}}),
              ElementsAre("parameters that keep their initial values: " + head_ + ".weight, " +
                          head_ + ".bias"));
  expect_fresh(head_ + ".weight");
  expect_fresh(head_ + ".bias");
  EXPECT_EQ(values(names_.front())[0], 1);
}

TEST_F(InitialWeights, PatternThatNamesNothing_IsRefused) {
  EXPECT_THAT(thrown_by([&] {
                load({.skip = {head_ + ".*", "head.*"}});
              }),
              IsUsageError("checkpoint.weights_skip"));
  expect_fresh(names_.front());  // nothing is half done
}

TEST_F(InitialWeights, MissingAndOtherTypes_AreRefused) {
  file_.tensors[head_ + ".bias"] = HostTensor{DType::kInt32, {3}, std::vector<char>(12)};
  EXPECT_THAT(failure(), HasSubstr("'" + head_ + ".bias' is of int32"));
  file_.tensors.erase(head_ + ".bias");
  EXPECT_THAT(failure(), HasSubstr("has no '" + head_ + ".bias'"));
}

}  // namespace
}  // namespace fleet
