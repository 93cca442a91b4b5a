// The job's Store over gRPC, for an event loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rendezvous/security.h"
#include "store/async_store.h"

namespace fleet {

// Like connect_store(), for this node's launcher. `post` moves an answer from a gRPC thread to the
// caller's loop. The destructor ends pending calls.
std::unique_ptr<AsyncStore> connect_async_store(const std::string& address,
                                                const std::string& job_id, int generation,
                                                const Security& security,
                                                std::function<void(std::function<void()>)> post);

}  // namespace fleet
