#include "tests/engine/ops/elementwise.h"

namespace fleet {
namespace {

INSTANTIATE_TEST_SUITE_P(Mul, ElementwiseTest,
                         testing::Values(BinaryOperation{
                             "elementwise_mul", [](double x, double y) { return x * y; }}));

}  // namespace
}  // namespace fleet
