// The key-value server of Horovod's ranks, on top of the job's Store, as pure logic.
//
// In Horovod the launcher runs one HTTP server. Ranks PUT and GET /SCOPE/KEY, poll until a key
// exists, and DELETE /SCOPE/RANK when they have finished with a scope. The scope is then empty for
// the next init
// (horovod/runner/http/http_server.py). Here every node has a server on loopback, backed by the
// Store: no unauthenticated server listens on the network.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rendezvous/types.h"
#include "store/store.h"
#include "transport/http_message.h"

namespace fleet {

class HorovodKv {
 public:
  using Respond = std::function<void(int status, std::string body)>;

  HorovodKv(const Assignment& assignment, std::shared_ptr<AsyncStore> store)
      : assignment_(assignment), store_(std::move(store)) {}

  // Calls back once, immediately or later, but never after this object is destroyed.
  void handle(const HttpRequest& request, const Respond& respond);

  // The number of ranks that use a scope: all for "global_", those of a node for "local_HOST", one
  // of each node that has a local rank N for "cross_N". 0 if the scope is unknown.
  int scope_size(const std::string& scope) const;

 private:
  void with_scope_round(const std::string& scope, const Respond& respond,
                        std::function<void(const std::string& prefix)> then);

  Assignment assignment_;
  std::shared_ptr<AsyncStore> store_;
};

}  // namespace fleet
