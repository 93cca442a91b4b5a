// The key-value Store through which the ranks of a job exchange NCCL ids, addresses, plan hashes
// and barriers, and how a rank gets that of its job.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace fleet {

// All calls may come from any thread. Every call throws kPeerLost if the job has ended or its host
// is gone, and kStale if the caller's generation is over: a rank never sees a value of another
// generation.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, std::string_view value) = 0;
  // Waits until the key is set. kTimeout names the key.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  // Adds to a counter that starts at 0; returns the new value. The counter's key holds its decimal
  // text.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
};

// The same calls with callbacks for the results, for callers that must not block: an event loop.
// Not thread-safe: calls and callbacks run in one thread.
class AsyncStore {
 public:
  struct Answer {
    std::string value;           // get(): the value; add(): the sum, as decimal text
    std::optional<Error> error;  // the error that Store's call would throw
  };
  using Done = std::function<void(Answer)>;

  // No callback runs after this.
  virtual ~AsyncStore() = default;
  virtual void set(const std::string& key, std::string_view value, Done done) = 0;
  virtual void get(const std::string& key, std::chrono::milliseconds timeout, Done done) = 0;
  virtual void add(const std::string& key, int64_t amount, Done done) = 0;
};

// A Store inside one process: for tests, and for a job of one rank.
std::shared_ptr<Store> make_memory_store();
// The same store under a key prefix, so that parts of a job cannot collide.
std::shared_ptr<Store> with_prefix(std::shared_ptr<Store> store, std::string prefix);

// Each of `size` callers waits until all have arrived. Each use needs its own key. kTimeout states
// how many arrived.
void store_barrier(Store& store, const std::string& key, int size,
                   std::chrono::milliseconds timeout);

// Connects a rank to its job's Store with the launcher's environment variables (store/env.h). The
// engine knows the interface only; the program installs a client, such as connect_store_from_env()
// of the rendezvous.
using StoreConnector = std::function<std::shared_ptr<Store>()>;

// Installs the connector; a later call replaces it. Not thread-safe: call it before threads start.
void set_store_connector(StoreConnector connector);

// The Store of this rank's job; nullptr if FLEET_STORE_ADDRESS is not set: the process was not
// started by a launcher. kUnsupported if the program has installed no connector.
std::shared_ptr<Store> job_store();

}  // namespace fleet
