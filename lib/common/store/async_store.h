// The Store for callers that must not block: an event loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace fleet {

// The calls of Store with callbacks for the results. Not thread-safe: calls and callbacks run in
// one thread.
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

}  // namespace fleet
