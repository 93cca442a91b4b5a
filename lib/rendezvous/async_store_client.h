// The job's Store over gRPC, for an event loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rendezvous/security.h"
#include "store/async_store.h"

namespace fleet {

// As connect_store(), for this node's launcher itself. `post` brings an answer, from one of gRPC's
// threads, into the loop that calls. Destroying it ends calls that wait.
std::unique_ptr<AsyncStore> connect_async_store(const std::string& address,
                                                const std::string& job_id, int epoch,
                                                const Security& security,
                                                std::function<void(std::function<void()>)> post);

}  // namespace fleet
