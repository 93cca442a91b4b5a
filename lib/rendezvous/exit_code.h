// What fleetrun and fleetd exit with where they end by an error.
#pragma once

#include "base/error.h"
#include "rendezvous/types.h"

namespace fleet {

// Of a rank kPeerLost is kExitPeerLost. That code is never a launcher's, for which another launcher
// or a fleetd is a lost node.
inline int launcher_exit_code(ErrorCode code) {
  return code == ErrorCode::kPeerLost ? kExitNodeLost : exit_code_for(code);
}

}  // namespace fleet
