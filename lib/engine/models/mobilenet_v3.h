// mobilenet_v3_large as a backbone.
#pragma once

#include <string>
#include <vector>

#include "models/network.h"

namespace fleet {

// The outputs of its 17 parts (torchvision's `features` with dilated=True): the last three blocks
// have stride 1 and convolutions dilated by 2, so that maps are a sixteenth of the image. prefix:
// starts the names of its layers, which are numbers.
std::vector<VarId> dilated_mobilenet_v3_large(Network& network, VarId image,
                                              const std::string& prefix);

}  // namespace fleet
