#include <gtest/gtest.h>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

struct MatmulCase {
  int64_t batch, m, k, n;
  bool transpose_x = false, transpose_y = false;
};

Values naive_matmul(const MatmulCase& c, const Values& x, const Values& y) {
  Values z(c.batch * c.m * c.n);
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        for (int64_t l = 0; l < c.k; ++l) {
          z[(b * c.m + i) * c.n + j] +=
              x[b * c.m * c.k + (c.transpose_x ? l * c.m + i : i * c.k + l)] *
              y[b * c.k * c.n + (c.transpose_y ? j * c.k + l : l * c.n + j)];
        }
      }
    }
  }
  return z;
}

void check_matmul(const MatmulCase& c, const std::vector<int64_t>& leading) {
  const auto shape = [&](int64_t rows, int64_t columns, bool transposed) {
    std::vector<int64_t> dims = leading;
    dims.push_back(transposed ? columns : rows);
    dims.push_back(transposed ? rows : columns);
    return Shape(dims);
  };
  check_op({.type = "matmul",
            .attributes = {{"transpose_x", c.transpose_x}, {"transpose_y", c.transpose_y}},
            .inputs = {{.shape = shape(c.m, c.k, c.transpose_x)},
                       {.shape = shape(c.k, c.n, c.transpose_y)}},
            .reference = [&](const std::vector<Values>& in) {
              return std::vector<Values>{naive_matmul(c, in[0], in[1])};
            }});
}

TEST(Matmul, AllTransposes_MatchReference) {
  for (const bool tx : {false, true}) {
    for (const bool ty : {false, true}) {
      SCOPED_TRACE(std::string(tx ? "x transposed " : "") + (ty ? "y transposed" : ""));
      check_matmul({1, 5, 7, 3, tx, ty}, {});
      check_matmul({3, 4, 5, 6, tx, ty}, {3});
      check_matmul({6, 2, 3, 4, tx, ty}, {2, 3});
    }
  }
}

TEST(Matmul, RowsAndColumns_MatchReference) {
  check_matmul({1, 1, 9, 1}, {});
  check_matmul({1, 8, 1, 9}, {});
  check_matmul({2, 1, 17, 5}, {1, 2});
}

TEST(Matmul, ShapesThatDoNotFit_AreRefusedByName) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {2, 3});
  const VarId y = program.feed("y", DType::kFloat32, {4, 5});
  try {
    program.emit(section, "matmul", {x, y});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("[4, 5]"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace fleet
