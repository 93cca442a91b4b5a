#include <gtest/gtest.h>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

// y[j0, j1, ...] = x[i], where i[perm[d]] = j[d].
Values naive_transpose(const Values& x, const Shape& shape, const std::vector<int64_t>& perm) {
  Shape turned = shape;
  for (size_t d = 0; d < perm.size(); ++d) turned[d] = shape[perm[d]];
  const Layout from = Layout::plain(shape), to = Layout::plain(turned);
  Values y(x.size());
  for (int64_t flat = 0; flat < shape.elements(); ++flat) {
    std::vector<int64_t> i(perm.size()), j(perm.size());
    for (int64_t rest = flat, d = shape.rank() - 1; d >= 0; --d) {
      i[d] = rest % shape[d];
      rest /= shape[d];
    }
    for (size_t d = 0; d < perm.size(); ++d) j[d] = i[perm[d]];
    y[to.offset(j)] = x[from.offset(i)];
  }
  return y;
}

void check_transpose(const Shape& shape, const std::vector<int64_t>& perm) {
  SCOPED_TRACE(shape.text());
  check_op({.type = "transpose",
            .attributes = {{"perm", perm}},
            .inputs = {{.shape = shape}},
            .reference =
                [&](const std::vector<Values>& in) {
                  return std::vector<Values>{naive_transpose(in[0], shape, perm)};
                },
            .tolerance = 0,
            .check_gradient = shape.elements() < 1000});
}

TEST(Transpose, Permutations_MatchesReference) {
  check_transpose({5}, {0});
  check_transpose({3, 5}, {1, 0});
  check_transpose({3, 5}, {0, 1});
  check_transpose({2, 3, 4, 5}, {0, 2, 3, 1});
  check_transpose({2, 3, 4, 5}, {0, 3, 1, 2});
  check_transpose({2, 3, 4, 5}, {3, 2, 1, 0});
  check_transpose({2, 3, 4, 5}, {1, 0, 2, 3});
  check_transpose({2, 5, 1, 3, 2}, {4, 1, 0, 3, 2});
}

TEST(Transpose, ManyTiles_MatchesReference) {
  check_transpose({300, 257}, {1, 0});
  check_transpose({3, 40, 5, 70}, {0, 2, 1, 3});
  check_transpose({3, 40, 5, 70}, {0, 3, 2, 1});
}

TEST(Transpose, PermThatIsNone_IsRefused) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {2, 3});
  for (const std::vector<int64_t>& perm : std::vector<std::vector<int64_t>>{{0}, {0, 0}, {0, 2}}) {
    EXPECT_THROW(program.emit(section, "transpose", {x}, {{"perm", perm}}), Error);
  }
}

}  // namespace
}  // namespace fleet
