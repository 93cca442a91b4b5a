#include <gtest/gtest.h>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

TEST(Fill, ShapeAndValue_FillsAll) {
  check_op({.type = "fill",
            .attributes = {{"shape", std::vector<int64_t>{3, 70}}, {"value", 0.25}},
            .reference =
                [](const std::vector<Values>&) { return std::vector<Values>{Values(210, 0.25)}; },
            .tolerance = 0,
            .check_gradient = false});
}

TEST(Fill, Integers_FillsAll) {
  check_op(
      {.type = "fill",
       .attributes = {{"shape", std::vector<int64_t>{5}},
                      {"value", -4.0},
                      {"dtype", std::string("int64")}},
       .reference = [](const std::vector<Values>&) { return std::vector<Values>{Values(5, -4)}; },
       .tolerance = 0,
       .check_gradient = false});
}

}  // namespace
}  // namespace fleet
