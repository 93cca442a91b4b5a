// The messages of proto/control.proto, as fleet::wire.
#pragma once

#include "proto/control.pb.h"

namespace fleet {

namespace wire = control::v1;

}  // namespace fleet
