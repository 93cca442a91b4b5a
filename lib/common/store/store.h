// The key-value Store through which the ranks of a job exchange NCCL ids, addresses, plan hashes
// and barriers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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

// A Store inside one process: for tests, and for a job of one rank.
std::shared_ptr<Store> make_memory_store();
// The same store under a key prefix, so that parts of a job cannot collide.
std::shared_ptr<Store> with_prefix(std::shared_ptr<Store> store, std::string prefix);

// Each of `size` callers waits until all have arrived. Each use needs its own key. kTimeout states
// how many arrived.
void store_barrier(Store& store, const std::string& key, int size,
                   std::chrono::milliseconds timeout);

}  // namespace fleet
