#include "tests/engine/ops/elementwise.h"

namespace fleet {
namespace {

INSTANTIATE_TEST_SUITE_P(Sub, ElementwiseTest,
                         testing::Values(BinaryOperation{
                             "elementwise_sub", [](double x, double y) { return x - y; }}));

}  // namespace
}  // namespace fleet
