#include <gtest/gtest.h>

#include <algorithm>

#include "exec/executor.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

struct Rows {
  std::vector<int64_t> rows;
  std::vector<float> values;
};

// The whole gradient of the same ids, and its rows.
struct Gradients {
  std::vector<float> whole;
  Rows sparse;
};

Gradients gradients_of(const std::vector<int64_t>& ids, const std::vector<float>& dy, int64_t rows,
                       int64_t padding = -1, bool padded = false) {
  const auto count = static_cast<int64_t>(ids.size());
  const int64_t size = static_cast<int64_t>(dy.size()) / count;
  Program program;
  const SectionId section = program.add_section("backward", {});
  const VarId id = program.feed("ids", DType::kInt64, {count});
  const VarId d = program.feed("dy", DType::kFloat32, {count, size});
  Attributes attributes = {{"rows", rows}, {"padding_idx", padding}};
  VarId whole = kNoVar;
  if (!padded) whole = program.emit(section, "embedding_grad", {id, d}, attributes)[0];
  attributes.set("padded", padded);
  const std::vector<VarId> sparse =
      program.emit(section, "embedding_grad_rows", {id, d}, attributes);
  std::vector<VarId> kept = sparse;
  if (!padded) kept.push_back(whole);
  Executor executor(plan_program(program, kept, op_plan_options()), op_device(), nullptr);
  executor.write(id, ids);
  executor.write(d, dy);
  executor.run({});
  return {padded ? std::vector<float>() : executor.values<float>(whole),
          {executor.values<int64_t>(sparse[0]), executor.values<float>(sparse[1])}};
}

TEST(EmbeddingGradRows, Ids_HaveTheirSumsInTheFirstOfTheirSlots) {
  const Rows got = gradients_of({5, 2, 5, 0}, {1, 2, 3, 4, 10, 20, 7, 8}, 6).sparse;
  EXPECT_EQ(got.rows, (std::vector<int64_t>{0, 2, 5, -1}));
  EXPECT_EQ(got.values, (std::vector<float>{7, 8, 3, 4, 11, 22, 0, 0}));
}

TEST(EmbeddingGradRows, PaddingAndIdsThatAreNone_HaveNoSlot) {
  const Rows got = gradients_of({-1, 2, 1, -1, 2}, {9, 1, 2, 9, 4}, 3, 1, true).sparse;
  EXPECT_EQ(got.values.size(), 5u);
  float sum = 0;
  for (size_t i = 0; i < got.rows.size(); ++i) {
    EXPECT_TRUE(got.rows[i] == -1 || got.rows[i] == 2) << got.rows[i];
    sum += got.values[i];
    if (got.rows[i] == 2) {
      EXPECT_EQ(got.values[i], 5);
    }
  }
  EXPECT_EQ(sum, 5);
}

// Values whose sum depends on the order: the same bits as the whole gradient's.
TEST(EmbeddingGradRows, ManyIds_AreTheRowsOfTheWholeGradient) {
  constexpr int64_t kCount = 3000, kRows = 5000, kSize = 12;
  std::vector<int64_t> ids(kCount);
  std::vector<float> dy(kCount * kSize);
  for (int64_t i = 0; i < kCount; ++i) ids[i] = i % 3 == 0 ? 4999 : i * 7919 % (i % 2 ? kRows : 40);
  for (size_t i = 0; i < dy.size(); ++i) dy[i] = 1.0f / static_cast<float>(i % 101 + 1);
  const Gradients got = gradients_of(ids, dy, kRows);
  std::vector<float> whole(kRows * kSize);
  int64_t last = -1;
  for (int64_t slot = 0; slot < kCount; ++slot) {
    const int64_t row = got.sparse.rows[slot];
    if (row < 0) continue;
    EXPECT_GT(row, last);
    last = row;
    std::copy_n(got.sparse.values.begin() + slot * kSize, kSize, whole.begin() + row * kSize);
  }
  EXPECT_EQ(whole, got.whole);
}

TEST(EmbeddingGradRows, PooledIds_ReadTheRowOfTheirList) {
  Program program;
  const SectionId section = program.add_section("backward", {});
  const VarId ids = program.feed("ids", DType::kInt64, {2, 3});
  const VarId dy = program.feed("dy", DType::kFloat32, {2, 2});
  const std::vector<VarId> made = program.emit(section, "embedding_grad_rows", {ids, dy},
                                               {{"rows", int64_t{1000001}}, {"pooled", true}});
  Executor executor(plan_program(program, made, op_plan_options()), op_device(), nullptr);
  executor.write(ids, std::vector<int64_t>{1000000, 4, -1, 4, -1, -1});
  executor.write(dy, std::vector<float>{1, 2, 10, 20});
  executor.run({});
  EXPECT_EQ(executor.values<int64_t>(made[0]), (std::vector<int64_t>{4, -1, 1000000, -1, -1, -1}));
  EXPECT_EQ(executor.values<float>(made[1]),
            (std::vector<float>{11, 22, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0}));
}

TEST(EmbeddingGradRows, IdOutOfRange_IsRefused) {
  if (op_device().backend() != "cpu") GTEST_SKIP() << "a kernel on a GPU cannot stop the step";
  EXPECT_THROW(gradients_of({1, 3}, {1, 1}, 3, -1, true), Error);
  EXPECT_THROW(gradients_of({1, -1}, {1, 1}, 3), Error);
}

}  // namespace
}  // namespace fleet
