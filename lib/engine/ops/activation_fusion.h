// The traits that passes read to fuse an activation into the operation before it.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// An elementwise activation y of x that other operations may fuse through their attribute
// "activation".
struct Activation {};

struct FusesActivations {
  std::vector<std::string> types;  // activations that the operation can fuse
};

}  // namespace fleet
