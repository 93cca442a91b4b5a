// Checks for every activation, in the shapes and layouts that kernels distinguish.
#pragma once

#include <functional>
#include <string>

#include "tests/engine/ops/op_check.h"

namespace fleet {

// type: of the operation; function: its reference. Inputs cover -6 to 6, where kinks are.
inline void check_activation(const std::string& type,
                             const std::function<double(double)>& function) {
  const auto reference = [function](const std::vector<Values>& in) {
    Values y = in[0];
    for (double& x : y) x = function(x);
    return std::vector<Values>{y};
  };
  check_op({.type = type,
            .inputs = {{.shape = {3, 5, 7}, .low = -5.7, .high = 6.1}},
            .reference = reference,
            .step = 1e-6});
  check_op({.type = type,  // of several threads
            .inputs = {{.shape = {4, 8191}, .low = -5.7, .high = 6.1}},
            .reference = reference,
            .check_gradient = false});
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = type,  // with padding
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
            .reference = reference,
            .step = 1e-6});
  check_op({.type = type,  // far from zero
            .inputs = {{.shape = {6}, .values = {-80, -4, -1, 1, 4, 1e4}}},
            .reference = reference,
            .step = 1e-6,
            .check_gradient = false});
}

}  // namespace fleet
