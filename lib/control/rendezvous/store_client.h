// The job's key-value Store over gRPC: a rank's side of the rendezvous.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/store.h"
#include "transport/security.h"

namespace fleet {

// The Store of `job_id` at `address` in generation `generation`, for the rank `rank` (shown in
// other ranks' messages). Connects on first use. Values have at most 8 MiB, keys 1 KiB. Throws,
// besides the Store's own errors, kUsage if the address serves another job or a limit is exceeded,
// and kPeerLost with the reason: the failed rank or lost node that ended the job, or the loss of
// the rendezvous.
std::shared_ptr<Store> connect_store(const std::string& address, const std::string& job_id,
                                     int generation, int rank, const Security& security = {});
// For an event loop: `post` moves an answer from a gRPC thread to the caller's loop. The
// destructor ends pending calls.
std::unique_ptr<AsyncStore> connect_async_store(const std::string& address,
                                                const std::string& job_id, int generation,
                                                const Security& security,
                                                std::function<void(std::function<void()>)> post);
// The blocking one from the environment that the launcher set (rendezvous/env.h); nullptr if
// FLEET_STORE_ADDRESS is not set. Throws kIo if FLEET_CREDENTIALS cannot be read.
std::shared_ptr<Store> connect_store_from_env();

}  // namespace fleet
