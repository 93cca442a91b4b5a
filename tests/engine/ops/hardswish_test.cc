#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/ops/activation_check.h"

namespace fleet {
namespace {

TEST(Hardswish, MatchesReference) {
  check_activation("hardswish", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; });
}

}  // namespace
}  // namespace fleet
