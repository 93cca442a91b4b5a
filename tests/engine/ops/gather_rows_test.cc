#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"
#include "tests/errors.h"

namespace fleet {
namespace {

struct GatherCase {
  Shape x, index;
  Values values;  // of index
  DType type = DType::kInt64;
};

OpCheck check_of_gather(const GatherCase& c) {
  const auto rows = static_cast<size_t>(c.x[1]), size = static_cast<size_t>(c.x[2]);
  const auto reads = static_cast<size_t>(c.index[c.index.rank() - 1]);
  return {.type = "gather_rows",
          .inputs = {{.shape = c.x}, {.shape = c.index, .values = c.values, .dtype = c.type}},
          .reference = [=](const std::vector<Values>& in) {
            Values y;
            for (size_t i = 0; i < in[1].size(); ++i) {
              const size_t row = i / reads * rows + static_cast<size_t>(in[1][i]);
              y.insert(y.end(), in[0].begin() + row * size, in[0].begin() + (row + 1) * size);
            }
            return std::vector<Values>{y};
          }};
}

TEST(GatherRows, RepeatedIndices_SumTheirGradients) {
  check_op(check_of_gather({{2, 4, 5}, {2, 3}, {3, 0, 3, 1, 1, 1}}));
  check_op(check_of_gather({{3, 5, 8}, {3, 2}, {4, 0, 2, 2, 0, 4}}));
  check_op(check_of_gather({{1, 1, 1}, {1, 1}, {0}}));
}

TEST(GatherRows, MoreReadsThanRows_MatchReference) {
  Values index;
  for (int i = 0; i < 2 * 40; ++i) index.push_back(i * 7 % 3);
  check_op(check_of_gather({{2, 3, 6}, {2, 40}, index}));
}

// Unused slots of a sample all read row 0, so that long lists are usual there.
TEST(GatherRows, LargeSamples_SumEachRow) {
  constexpr int64_t kSamples = 5, kRows = 128, kReads = 20, kSize = 300;
  std::vector<int64_t> index(kSamples * kReads);
  for (int64_t i = 0; i < kSamples * kReads; ++i) index[i] = i % 4 == 0 ? 0 : i * 37 % kRows;
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId var = program.feed("index", DType::kInt64, {kSamples, kReads});
  const VarId dy = program.feed("dy", DType::kFloat32, {kSamples, kReads, kSize});
  const VarId dx = program.temporary("dx");
  program.append(forward, "gather_rows_grad", {var, dy}, {dx}, {{"rows", kRows}});
  Executor executor(plan_program(program, {dx}, op_plan_options()), op_device(), nullptr);
  std::vector<float> gradient(kSamples * kReads * kSize), wanted(kSamples * kRows * kSize);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 17) - 8;
  for (int64_t i = 0; i < kSamples * kReads; ++i) {  // sums of small integers are exact
    const int64_t row = i / kReads * kRows + index[i];
    for (int64_t k = 0; k < kSize; ++k) wanted[row * kSize + k] += gradient[i * kSize + k];
  }
  executor.write(var, index);
  executor.write(dy, gradient);
  executor.run({});
  EXPECT_EQ(executor.values<float>(dx), wanted);
}

TEST(GatherRows, IndexOutsideTheRows_IsRefusedOrNan) {
  OpCheck wrong = check_of_gather({{2, 4, 5}, {2, 2}, {3, 0, 4, 1}});
  wrong.check_gradient = false;
  wrong.reference = [](const std::vector<Values>&) { return std::vector<Values>{{}}; };
  if (op_device().backend() == "cpu") {
    EXPECT_THAT(thrown_by([&] { check_op(wrong); }), IsError(ErrorCode::kUsage));
    return;
  }
  const Values y = check_op(wrong)[0];
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i >= 10 && i < 15) << i;
}

TEST(GatherRows, WrongInputs_AreRefused) {
  for (const GatherCase& wrong :
       {GatherCase{{2, 4, 5}, {3, 2}, Values(6)}, GatherCase{{2, 4, 5}, {6}, Values(6)},
        GatherCase{{2, 4, 5}, {2, 3}, Values(6), DType::kFloat32}}) {
    EXPECT_THAT(thrown_by([&] { check_op(check_of_gather(wrong)); }), IsError(ErrorCode::kUsage))
        << wrong.index.text();
  }
}

}  // namespace
}  // namespace fleet
