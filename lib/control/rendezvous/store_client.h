// A rank's side of the rendezvous: the job's key-value Store over gRPC.
#pragma once

#include <memory>
#include <string>

#include "rendezvous/security.h"
#include "store/store.h"

namespace fleet {

// The Store of `job_id` at `address` in generation `generation`, for the rank `rank` (shown in
// other ranks' messages). Connects on first use. Values have at most 8 MiB, keys 1 KiB. Throws,
// besides the Store's own errors, kUsage if the address serves another job or a limit is exceeded,
// and kPeerLost with what ended the job (the failed rank or lost node) or the loss of the
// rendezvous.
std::shared_ptr<Store> connect_store(const std::string& address, const std::string& job_id,
                                     int generation, int rank, const Security& security = {});
// The same from the environment that the launcher set (rendezvous/env.h); nullptr if
// FLEET_STORE_ADDRESS is not set. Throws kIo if FLEET_CREDENTIALS cannot be read.
std::shared_ptr<Store> connect_store_from_env();

}  // namespace fleet
