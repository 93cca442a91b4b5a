// Operations of text models against values and gradients that scripts/make_golden_text_ops.py
// computed with PyTorch and transformers.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "exec/executor.h"
#include "passes/backward.h"
#include "tensor/float16.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"
#include "tests/golden/golden.h"

namespace fleet {
namespace {

// The tensor of this name, as the script's head describes it.
std::vector<float> golden_input(const std::string& name, int64_t count, DType dtype) {
  std::vector<float> values(static_cast<size_t>(count));
  const uint64_t key = golden::fnv1a(name);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t k = golden::splitmix64(key + i) >> 40;
    const float u = static_cast<float>(static_cast<double>(k) * 2 / 16777216 - 1);
    values[i] = name == "scale" ? 1 + u / 4 : name == "bias" ? u / 4 : name == "wide" ? 6 * u : u;
    if (dtype == DType::kBFloat16) values[i] = static_cast<float>(BFloat16(values[i]));
  }
  return values;
}

Attribute attribute_of(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return value.get<int64_t>();
  return value.get<double>();
}

// One case as a Program with its gradients.
class GoldenCase {
 public:
  explicit GoldenCase(const nlohmann::json& golden)
      : golden_(golden), dtype_(to_dtype(golden.at("dtype").get<std::string>())) {
    const SectionId forward = program_.add_section("forward", {});
    for (const nlohmann::json& input : golden.at("inputs")) {
      const DType dtype =
          input.contains("values") ? DType::kInt64 : to_dtype(input.at("dtype").get<std::string>());
      inputs_.push_back(program_.feed(input.at("name"), dtype, shape_of(input)));
    }
    Attributes attributes;
    for (const auto& [name, value] : golden.at("attributes").items()) {
      attributes.set(name, attribute_of(value));
    }
    outputs_ = program_.emit(forward, golden.at("operation"), inputs_, attributes);
    if (!golden.at("gradients").empty()) add_backward(forward);
  }

  void check() {
    std::vector<VarId> keep = outputs_;
    for (VarId input : inputs_) {
      if (program_.gradient(input) != kNoVar) keep.push_back(program_.gradient(input));
    }
    Executor executor(plan_program(program_, keep, op_plan_options()), op_device(), nullptr);
    for (size_t i = 0; i < inputs_.size(); ++i) feed_input(executor, i);
    for (const auto& [name, var] : seeds_) feed(executor, var, name);
    executor.run({});
    executor.synchronize();
    for (size_t i = 0; i < golden_.at("outputs").size(); ++i) {
      compare(executor, outputs_[i], golden_.at("outputs")[i], is_exact() ? 0 : tolerance(),
              "output " + std::to_string(i));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::string name = golden_.at("inputs")[i].at("name");
      if (!golden_.at("gradients").contains(name)) continue;
      compare(executor, program_.gradient(inputs_[i]), golden_.at("gradients").at(name),
              4 * tolerance(), "gradient of " + name);
    }
  }

 private:
  static Shape shape_of(const nlohmann::json& input) {
    return to_shape(input.at("shape").get<std::vector<int64_t>>());
  }
  // Norms in bfloat16 round as transformers does, bit for bit. Its products of gated activations
  // and its gradients are rounded in between.
  bool is_exact() const {
    return dtype_ == DType::kBFloat16 &&
           golden_.at("operation").get<std::string>().ends_with("rms_norm");
  }
  double tolerance() const { return dtype_ == DType::kBFloat16 ? 0x1p-8 : 2e-6; }

  void add_backward(SectionId forward) {
    std::vector<std::pair<VarId, VarId>> seeds;
    for (size_t i = 0; i < golden_.at("outputs").size(); ++i) {
      const Var output = program_.var(outputs_[i]);
      const std::string name = "seed" + std::to_string(i);
      seeds_.emplace_back(name, program_.feed(name, output.dtype, output.shape));
      seeds.emplace_back(outputs_[i], seeds_.back().second);
    }
    std::vector<VarId> wrt;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::string name = golden_.at("inputs")[i].at("name");
      if (golden_.at("gradients").contains(name)) wrt.push_back(inputs_[i]);
    }
    append_backward_from(program_, forward, seeds, wrt);
  }

  void feed_input(Executor& executor, size_t i) {
    const nlohmann::json& input = golden_.at("inputs")[i];
    if (!input.contains("values")) return feed(executor, inputs_[i], input.at("name"));
    executor.write(inputs_[i], input.at("values").get<std::vector<int64_t>>());
  }

  void feed(Executor& executor, VarId var, const std::string& name) {
    const auto values = golden_input(name, program_.var(var).shape.elements(), dtype_);
    if (program_.var(var).dtype != DType::kBFloat16) return executor.write(var, values);
    std::vector<BFloat16> narrow(values.size());
    for (size_t i = 0; i < values.size(); ++i) narrow[i] = values[i];
    executor.write(var, narrow);
  }

  void compare(Executor& executor, VarId var, const nlohmann::json& wanted, double relative,
               const std::string& what) {
    std::vector<float> got;
    if (program_.var(var).dtype == DType::kBFloat16) {
      for (const BFloat16 value : executor.values<BFloat16>(var)) got.push_back(value);
    } else {
      got = executor.values<float>(var);
    }
    ASSERT_EQ(got.size(), wanted.size()) << what;
    double largest = 0;
    for (const nlohmann::json& value : wanted)
      largest = std::max(largest, std::abs(value.get<double>()));
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i].get<double>(), relative * largest) << what << " [" << i << "]";
    }
  }

  const nlohmann::json& golden_;
  const DType dtype_;
  Program program_;
  std::vector<VarId> inputs_, outputs_;
  std::vector<std::pair<std::string, VarId>> seeds_;
};

TEST(GoldenTextOps, EachCase_IsPyTorchs) {
  const auto golden =
      nlohmann::json::parse(std::ifstream(source_folder() + "/tests/golden/text_ops.json"));
  std::set<std::string> tested;
  for (const nlohmann::json& one : golden.at("cases")) {
    SCOPED_TRACE(one.at("operation").get<std::string>() + " " + one.at("dtype").get<std::string>() +
                 " " + one.at("attributes").dump());
    GoldenCase(one).check();
    tested.insert(one.at("operation"));
  }
  EXPECT_EQ(tested.size(), 9U);
}

}  // namespace
}  // namespace fleet
