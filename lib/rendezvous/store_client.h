// A rank's side: the job's key-value Store over gRPC.
#pragma once

#include <memory>
#include <string>

#include "rendezvous/security.h"
#include "store/store.h"

namespace fleet {

// The Store of `job_id` at `address` as of `epoch`, for the rank `rank` (named in messages of
// others). Connects on first use. Values are at most 8 MiB, keys 1 KiB. Errors besides Store's own:
// kUsage where the address serves another job or a bound is passed. kPeerLost names what ended the
// job (the failed rank or lost node), or the rendezvous that is gone.
std::shared_ptr<Store> connect_store(const std::string& address, const std::string& job_id,
                                     int epoch, int rank, const Security& security = {});
// The same from the environment that the launcher set (rendezvous/env.h); nullptr where
// FLEET_STORE_ADDRESS is not set. kIo where FLEET_CREDENTIALS cannot be read.
std::shared_ptr<Store> connect_store_from_env();

}  // namespace fleet
