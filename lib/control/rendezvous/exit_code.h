// Exit codes of fleetrun and fleetd when they end by an error.
#pragma once

#include "base/error.h"
#include "rendezvous/types.h"

namespace fleet {

// A rank exits with kExitPeerLost on kPeerLost. A launcher never uses that code: for it, the loss
// of another launcher or of a fleetd is a lost node.
inline int launcher_exit_code(ErrorCode code) {
  return code == ErrorCode::kPeerLost ? kExitNodeLost : exit_code_for(code);
}

}  // namespace fleet
