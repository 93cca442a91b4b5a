#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/activation_check.h"

namespace fleet {
namespace {

TEST(Silu, MatchesReference) {
  check_activation("silu", [](double x) { return x / (1 + std::exp(-x)); });
}

}  // namespace
}  // namespace fleet
