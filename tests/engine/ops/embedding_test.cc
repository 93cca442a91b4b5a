#include <gtest/gtest.h>

#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

struct EmbeddingCase {
  Values ids;
  Shape ids_shape;
  int64_t rows = 7, size = 5;
  int64_t padding = -1;
  DType id_type = DType::kInt64;
};

OpCheck check_of_embedding(const EmbeddingCase& c) {
  const int64_t size = c.size;
  return {.type = "embedding",
          .attributes = {{"padding_idx", c.padding}},
          .inputs = {{.shape = c.ids_shape, .values = c.ids, .dtype = c.id_type},
                     {.shape = {c.rows, c.size}, .kind = VarKind::kParameter}},
          .reference = [size](const std::vector<Values>& in) {
            Values y;
            for (const double id : in[0]) {
              const auto row = in[1].begin() + static_cast<int64_t>(id) * size;
              y.insert(y.end(), row, row + size);
            }
            return std::vector<Values>{y};
          }};
}

TEST(Embedding, RepeatedIds_SumTheirGradients) {
  check_op(check_of_embedding({.ids = {3, 0, 6, 3, 3, 1}, .ids_shape = {2, 3}}));
  check_op(check_of_embedding(
      {.ids = {3, 0, 6, 3, 3, 1}, .ids_shape = {6}, .size = 8, .id_type = DType::kInt32}));
}

// The gradient is of the reference's values only for ids that are not the padding.
TEST(Embedding, PaddingIndex_HasValuesButNoGradient) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId weight = program.feed("weight", DType::kFloat32, {4, 3});
  const VarId ids = program.feed("ids", DType::kInt64, {3});
  const VarId y = program.temporary("y"), dy = program.feed("dy", DType::kFloat32, {3, 3});
  const VarId dweight = program.temporary("dweight");
  program.append(forward, "embedding", {ids, weight}, {y}, {{"padding_idx", int64_t{2}}});
  program.append(forward, "embedding_grad", {ids, dy}, {dweight},
                 {{"rows", int64_t{4}}, {"padding_idx", int64_t{2}}});
  Executor executor(plan_program(program, {y, dweight}, op_plan_options()), op_device(), nullptr);
  executor.write(ids, std::vector<int64_t>{2, 1, 2});
  executor.write(weight, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  executor.write(dy, std::vector<float>{1, 1, 1, 2, 3, 4, 1, 1, 1});
  executor.run({});
  EXPECT_EQ(executor.values<float>(y), (std::vector<float>{6, 7, 8, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(executor.values<float>(dweight),
            (std::vector<float>{0, 0, 0, 2, 3, 4, 0, 0, 0, 0, 0, 0}));
}

// Many ids of a large vocabulary: every digit of the sort, long and short runs, several threads.
TEST(Embedding, ManyIds_SumTheRowsOfEach) {
  constexpr int64_t kCount = 2100, kRows = 70000, kSize = 4;
  std::vector<int64_t> ids(kCount);
  uint64_t state = 1;
  for (int64_t i = 0; i < kCount; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids[i] = i % 3 == 0 ? 69999 : static_cast<int64_t>((state >> 33) % (i % 2 ? kRows : 300));
  }
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId var = program.feed("ids", DType::kInt64, {kCount});
  const VarId dy = program.feed("dy", DType::kFloat32, {kCount, kSize});
  const VarId dweight = program.temporary("dweight");
  program.append(forward, "embedding_grad", {var, dy}, {dweight}, {{"rows", kRows}});
  Executor executor(plan_program(program, {dweight}, op_plan_options()), op_device(), nullptr);
  std::vector<float> gradient(kCount * kSize), wanted(kRows * kSize);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 17) - 8;
  for (int64_t i = 0; i < kCount; ++i) {  // sums of small integers are exact in any order
    for (int64_t k = 0; k < kSize; ++k) wanted[ids[i] * kSize + k] += gradient[i * kSize + k];
  }
  executor.write(var, ids);
  executor.write(dy, gradient);
  executor.run({});
  EXPECT_EQ(executor.values<float>(dweight), wanted);
}

TEST(Embedding, IdOutOfRange_IsRefusedByItsPosition) {
  if (op_device().backend() != "cpu") GTEST_SKIP() << "a kernel on a GPU cannot stop the step";
  OpCheck wrong = check_of_embedding({.ids = {1, 7, 2}, .ids_shape = {3}});
  wrong.reference = [](const std::vector<Values>&) {
    return std::vector<Values>{Values(size_t{15})};
  };
  try {
    check_op(wrong);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("id 7 at position 1"), std::string::npos)
        << error.what();
  }
}

// Lists of ids, of which -1 is none: none, one, several, and one twice.
OpCheck check_of_lists(const Values& ids, const Shape& shape, int64_t size, DType type) {
  const int64_t pool = shape[shape.rank() - 1];
  return {.type = "embedding",
          .attributes = {{"pooled", true}},
          .inputs = {{.shape = shape, .values = ids, .dtype = type},
                     {.shape = {7, size}, .kind = VarKind::kParameter}},
          .reference = [=](const std::vector<Values>& in) {
            Values y(in[0].size() / pool * size);
            for (size_t i = 0; i < in[0].size(); ++i) {
              if (in[0][i] < 0) continue;
              for (int64_t k = 0; k < size; ++k) {
                y[i / pool * size + k] += in[1][static_cast<int64_t>(in[0][i]) * size + k];
              }
            }
            return std::vector<Values>{y};
          }};
}

TEST(Embedding, PooledIds_AreSumsWithoutThoseThatAreNone) {
  const Values ids = {3, -1, -1, 0, 6, 6, -1, -1, -1, 2, 3, 5};
  check_op(check_of_lists(ids, {2, 2, 3}, 5, DType::kInt64));
  check_op(check_of_lists(ids, {4, 3}, 8, DType::kInt32));
  check_op(check_of_lists(ids, {12, 1}, 1, DType::kInt64));
  check_op(check_of_lists(ids, {1, 12}, 300, DType::kInt64));
}

TEST(Embedding, PooledIdOutOfRange_IsRefused) {
  if (op_device().backend() != "cpu") GTEST_SKIP() << "a kernel on a GPU cannot stop the step";
  for (const double id : {7.0, -2.0}) {
    OpCheck wrong = check_of_lists({1, id}, {1, 2}, 3, DType::kInt64);
    wrong.reference = [](const std::vector<Values>&) {
      return std::vector<Values>{Values(size_t{3})};
    };
    EXPECT_THROW(check_op(wrong), Error);
  }
  EXPECT_THROW(check_op(check_of_lists({1, 2}, {2}, 3, DType::kInt64)), Error);  // no lists
}

TEST(Embedding, WrongInputs_AreRefused) {
  EXPECT_THROW(check_op(check_of_embedding({.ids = {1}, .ids_shape = {1}, .padding = 7})), Error);
  EXPECT_THROW(
      check_op(check_of_embedding({.ids = {1}, .ids_shape = {1}, .id_type = DType::kFloat32})),
      Error);
}

}  // namespace
}  // namespace fleet
