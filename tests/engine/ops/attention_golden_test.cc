// Attention against PyTorch's scaled_dot_product_attention (scripts/make_golden_attention.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/engine/ops/attention_reference.h"
#include "tests/engine/ops/op_check.h"
#include "tests/golden/golden.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

Values golden_input(const std::string& name, const Shape& shape) {
  Values values(static_cast<size_t>(shape.elements()));
  const uint64_t key = golden::fnv1a(name);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(golden::splitmix64(key + i) >> 40) * 2 / 16777216 - 1;
  }
  return values;
}

void expect_golden(const Values& got, const nlohmann::json& want, const std::string& what) {
  SCOPED_TRACE(what);
  double squares = 0;
  for (double value : got) squares += value * value;
  const double wanted = want.at("squares");
  EXPECT_NEAR(squares, wanted, 1e-5 * wanted);
  const Values first = want.at("first");
  for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(got[i], first[i], 2e-5) << i;
}

TEST(AttentionGolden, Values_ArePyTorchs) {
  const auto cases =
      nlohmann::json::parse(std::ifstream(source_folder() + "/tests/golden/attention.json"));
  ASSERT_EQ(cases.size(), 3u);
  for (const nlohmann::json& one : cases) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    const AttentionCase c = {.batch = one.at("batch"),
                             .tokens = one.at("tokens"),
                             .heads = one.at("heads"),
                             .kv_heads = one.at("kv_heads"),
                             .size = one.at("size"),
                             .causal = one.at("causal"),
                             .scale = one.at("scale")};
    OpCheck check = {
        .type = "attention",
        .attributes = c.attributes(),
        .inputs = {{.shape = c.q_shape(), .values = golden_input("q", c.q_shape())},
                   {.shape = c.kv_shape(), .values = golden_input("k", c.kv_shape())},
                   {.shape = c.kv_shape(), .values = golden_input("v", c.kv_shape())},
                   {.shape = {}, .present = false},
                   {.shape = {}, .present = false}},
        .reference = [=](const std::vector<Values>& in) { return naive_attention(c, in); }};
    check.check_gradient = false;
    const std::vector<Values> outputs = check_op(check);
    expect_golden(outputs[0], one.at("y"), "y");
    check.type = "attention_grad";
    check.inputs.push_back({.shape = c.y_shape(), .values = outputs[0]});
    check.inputs.push_back(
        {.shape = {c.batch, c.heads, c.tokens}, .values = outputs[1], .dtype = DType::kFloat32});
    check.inputs.push_back({.shape = c.y_shape(), .values = golden_input("dy", c.y_shape())});
    check.reference = [=](const std::vector<Values>& in) { return naive_attention_grad(c, in); };
    const std::vector<Values> gradients = check_op(check);
    for (int i = 0; i < 3; ++i) {
      const std::string name = std::string("d") + "qkv"[i];
      expect_golden(gradients[i], one.at(name), name);
    }
  }
}

}  // namespace
}  // namespace fleet
