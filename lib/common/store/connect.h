// Connects a rank to its job's Store. The engine knows the interface only; the program installs a
// client, such as connect_store_from_env() of the rendezvous.
#pragma once

#include <functional>
#include <memory>

#include "store/store.h"

namespace fleet {

// Connects with the launcher's environment variables (store/env.h).
using StoreConnector = std::function<std::shared_ptr<Store>()>;

// Installs the connector; a later call replaces it. Not thread-safe: call it before threads start.
void set_store_connector(StoreConnector connector);

// The Store of this rank's job; nullptr if FLEET_STORE_ADDRESS is not set: the process was not
// started by a launcher. kUnsupported if the program has installed no connector.
std::shared_ptr<Store> job_store();

}  // namespace fleet
