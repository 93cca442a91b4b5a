#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "base/error.h"
#include "tests/engine/ops/attention_reference.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

std::vector<CheckInput> inputs_of(const AttentionCase& c) {
  return {
      {.shape = c.q_shape()},
      {.shape = c.kv_shape(), .present = !c.packed},
      {.shape = c.kv_shape(), .present = !c.packed},
      {.shape = {c.batch, c.tokens},
       .values = c.documents,
       .dtype = DType::kInt64,
       .present = !c.documents.empty()},
      {.shape = {c.batch}, .values = c.keys, .dtype = DType::kInt64, .present = !c.keys.empty()}};
}

OpCheck check_of_attention(const AttentionCase& c) {
  return {.type = "attention",
          .attributes = c.attributes(),
          .inputs = inputs_of(c),
          .reference = [=](const std::vector<Values>& in) {
            return std::vector<Values>{naive_attention(c, in)[0]};
          }};
}

// y and lse, and the gradient against formulas: for sizes at which differences take too long.
std::vector<Values> check_sizes(const AttentionCase& c) {
  SCOPED_TRACE(c.q_shape().text());
  OpCheck forward = check_of_attention(c);
  forward.check_gradient = false;
  forward.reference = [=](const std::vector<Values>& in) { return naive_attention(c, in); };
  std::vector<Values> results = check_op(forward);
  OpCheck backward = {
      .type = "attention_grad",
      .attributes = c.attributes(),
      .inputs = inputs_of(c),
      .reference = [=](const std::vector<Values>& in) { return naive_attention_grad(c, in); }};
  // The scores of random inputs are small: lse is near the logarithm of the number of keys.
  backward.inputs.push_back({.shape = c.y_shape()});
  backward.inputs.push_back({.shape = {c.batch, c.heads, c.tokens},
                             .dtype = DType::kFloat32,
                             .low = std::log(static_cast<double>(c.tokens)),
                             .high = std::log(static_cast<double>(c.tokens)) + 1});
  backward.inputs.push_back({.shape = c.y_shape()});
  backward.check_gradient = false;
  backward.optional_outputs = !c.packed;
  for (Values& values : check_op(backward)) results.push_back(std::move(values));
  return results;
}

TEST(Attention, Plain_MatchesReference) {
  check_op(check_of_attention({.batch = 2, .tokens = 5, .heads = 2, .kv_heads = 2, .size = 3}));
}

TEST(Attention, CausalWindow_MatchesReference) {
  check_op(check_of_attention({.tokens = 7, .causal = true}));
  check_op(check_of_attention({.tokens = 9, .causal = true, .window = 3, .scale = 0.7}));
  check_op(check_of_attention({.tokens = 4, .causal = true, .window = 1}));
}

TEST(Attention, GroupedQueries_MatchReference) {
  check_op(check_of_attention({.batch = 2, .tokens = 4, .heads = 6, .kv_heads = 2, .size = 3}));
}

TEST(Attention, PackedInput_MatchesReference) {
  check_op(check_of_attention(
      {.batch = 2, .tokens = 4, .heads = 4, .kv_heads = 2, .size = 2, .packed = true}));
}

TEST(Attention, Documents_SeeThemselvesOnly) {
  check_op(check_of_attention({.batch = 2,
                               .tokens = 6,
                               .causal = true,
                               .documents = {0, 0, 1, 1, 1, -1, 7, 8, 8, 7, 8, 7}}));
}

TEST(Attention, Dropout_MatchesReference) {
  check_op(check_of_attention(
      {.batch = 2, .tokens = 6, .heads = 4, .kv_heads = 2, .dropout = 0.4, .keys = {11, -3}}));
}

// Heads of every vector length, tokens at no bound of a tile. The emulated GPU is slow.
TEST(Attention, OddSizes_MatchReference) {
  const bool slow = op_may_lack_kernel();
  for (const int64_t size : {1, 8, 16, 20, 64, 80, 128, 256}) {
    if (slow && size != 20 && size != 80 && size != 256) continue;
    check_sizes({.tokens = slow ? 5 : 37,
                 .heads = slow ? 1 : 2,
                 .kv_heads = slow ? 1 : 2,
                 .size = size,
                 .packed = size % 16 == 0 && !slow});
  }
  check_sizes({.tokens = 1, .size = 5, .causal = true});
}

TEST(Attention, ManyTiles_MatchReference) {
  const int64_t tokens = op_may_lack_kernel() ? 70 : 300;
  check_sizes({.tokens = tokens, .heads = 2, .size = 16, .packed = true, .causal = true});
  check_sizes({.tokens = tokens, .size = 8, .causal = true, .window = 40});
  Values documents(tokens);
  for (int64_t t = 0; t < tokens; ++t) {
    documents[t] = t < tokens / 3 ? 4 : t < tokens / 2 ? 5 : t < tokens / 2 + 10 ? 4 : -1;
  }
  check_sizes({.tokens = tokens, .size = 8, .dropout = 0.2, .documents = documents, .keys = {9}});
}

// Several blocks of queries and tiles of keys, at the head size of most networks; 197 tokens
// without a mask are a vision transformer's.
TEST(Attention, WholeBlocks_MatchReference) {
  check_sizes({.tokens = 133, .size = 40, .packed = true});
  check_sizes({.tokens = 70, .size = 128, .causal = true});
  if (!op_may_lack_kernel()) check_sizes({.batch = 2, .tokens = 197, .size = 64, .packed = true});
}

// On a GPU these go through cuDNN in 16-bit types, where it has a plan.
TEST(Attention, WithoutDropoutAndWindow_MatchesReference) {
  check_sizes({.batch = 2, .tokens = 20, .heads = 2, .size = 16, .causal = true});
  check_sizes({.batch = 2, .tokens = 12, .heads = 4, .kv_heads = 2, .size = 16, .packed = true});
  AttentionCase packed = {.batch = 2, .tokens = 18, .size = 16, .packed = true, .causal = true};
  for (int64_t t = 0; t < 36; ++t)
    packed.documents.push_back(t % 18 < 7 ? 5 : t % 18 < 13 ? 6 : -1);
  check_sizes(packed);
}

TEST(Attention, GroupsOverTiles_MatchReference) {
  Values documents;
  for (int64_t t = 0; t < 140; ++t) documents.push_back(t < 50 ? 3 : t < 64 ? 4 : t < 128 ? 5 : -1);
  check_sizes({.tokens = 140,
               .heads = 2,
               .size = 24,
               .packed = true,
               .causal = true,
               .documents = documents});
}

// The first 64 queries, where the tokens from 64 on are NaN and no query before them sees one.
void expect_untouched_by_later(const AttentionCase& c, DType dtype) {
  SCOPED_TRACE(name_of(dtype));
  OpCheck check = check_of_attention(c);
  check.dtype = dtype;
  check.check_gradient = false;
  check.reference = [](const std::vector<Values>&) { return std::vector<Values>{{}}; };
  Values q(c.q_shape().elements(), 0.5);
  const int64_t row = c.q_shape()[2] * c.size;
  std::fill(q.begin() + 64 * row, q.end(), std::nan(""));
  check.inputs[0].values = q;
  const Values y = check_op(check)[0];
  for (int64_t i = 0; i < 64 * c.heads * c.size; ++i) ASSERT_NEAR(y[i], 0.5, 0.01) << i;
}

// A tile of which a query sees no key is not read: 0 times NaN would be NaN.
TEST(Attention, HiddenTiles_AreSkipped) {
  if (!op_may_lack_kernel()) GTEST_SKIP() << "the CPU's tiles are larger";
  AttentionCase documents = {.tokens = 192, .size = 16, .packed = true};
  for (int64_t t = 0; t < documents.tokens; ++t) documents.documents.push_back(t / 64);
  const AttentionCase causal = {.tokens = 192, .size = 16, .packed = true, .causal = true};
  std::set<DType> types;
  for (const OpVariant& variant : op_variants()) types.insert(variant.dtype);
  for (const DType dtype : types) {
    expect_untouched_by_later(documents, dtype);
    expect_untouched_by_later(causal, dtype);
  }
}

TEST(Attention, LargeScores_StayFinite) {
  AttentionCase c = {.tokens = 40, .size = 8, .scale = 50};
  OpCheck check = check_of_attention(c);
  check.check_gradient = false;
  const std::vector<Values> outputs = check_op(check);
  for (double value : outputs[0]) EXPECT_TRUE(std::isfinite(value));
}

// Sequence packing: what one document holds does not change a bit of another.
TEST(Attention, OtherDocumentChanges_LeaveItsBits) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  AttentionCase c = {.tokens = 70, .heads = 2, .size = 8, .packed = true, .causal = true};
  for (int64_t t = 0; t < c.tokens; ++t) c.documents.push_back(t < 33 ? 1 : 2);
  Values q(c.q_shape().elements());
  for (double& value : q) value = uniform(random);
  const auto run = [&] {
    OpCheck check = check_of_attention(c);
    check.inputs[0].values = q;
    check.check_gradient = false;
    return check_op(check)[0];
  };
  const Values before = run();
  const int64_t q_row = c.q_shape()[2] * c.size, y_row = c.heads * c.size;
  for (int64_t i = 0; i < 33 * q_row; ++i) q[i] = uniform(random);
  const Values after = run();
  const auto second = [&](const Values& y) { return Values(y.begin() + 33 * y_row, y.end()); };
  EXPECT_EQ(second(before), second(after));
  EXPECT_NE(before, after);
}

// The mask belongs to the sample, not to its position in the batch or the length of the batch.
TEST(Attention, SampleMovesInBatch_KeepsItsMask) {
  const auto run = [](int64_t tokens, Values keys) {
    AttentionCase c = {.batch = static_cast<int64_t>(keys.size()),
                       .tokens = tokens,
                       .size = 4,
                       .causal = true,
                       .dropout = 0.5,
                       .keys = std::move(keys)};
    OpCheck check = check_of_attention(c);
    for (int i = 0; i < 3; ++i) check.inputs[i].values = Values(c.q_shape().elements(), 1);
    check.check_gradient = false;
    return check_op(check)[0];
  };
  const Values one = run(20, {7}), two = run(24, {8, 7}), other = run(20, {8});
  EXPECT_EQ(one, Values(two.begin() + 24 * 4, two.begin() + 44 * 4));
  EXPECT_NE(one, other);
}

void expect_refused(const AttentionCase& c, const std::string& what) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  std::vector<VarId> inputs;
  for (const CheckInput& input : inputs_of(c)) {
    const std::string name = "x" + std::to_string(inputs.size());
    Shape shape = input.shape;
    if (inputs.size() == 3) shape = {c.batch, static_cast<int64_t>(c.documents.size())};
    const DType dtype = input.dtype.value_or(DType::kFloat32);
    inputs.push_back(input.present ? program.feed(name, dtype, shape) : kNoVar);
  }
  try {
    program.emit(forward, "attention", inputs, c.attributes());
    FAIL() << "accepted: " << what;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
}

TEST(Attention, ImpossibleArguments_AreRefused) {
  expect_refused({.window = 3}, "a window needs causal");
  expect_refused({.causal = true, .window = -1}, "is negative");
  expect_refused({.scale = -1}, "scale");
  expect_refused({.dropout = 1, .keys = {1}}, "dropout");
  expect_refused({.dropout = 0.5}, "sample_key");
  expect_refused({.heads = 3, .kv_heads = 2}, "not a multiple");
  expect_refused({.tokens = 4, .documents = {1, 2, 3}}, "document_ids");
}

}  // namespace
}  // namespace fleet
