// What Horovod's ranks ask of their key-value server, over the job's Store, as pure logic.
//
// Horovod's launcher has one HTTP server; ranks PUT and GET /SCOPE/KEY, polling until it is there,
// and DELETE /SCOPE/RANK when they have finished with a scope, which then is empty for a next init
// (horovod/runner/http/http_server.py). Here every node has a server, on loopback, and the Store is
// behind all of them: nothing unguarded listens on the network.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launch/dialects/kv_http.h"
#include "rendezvous/types.h"
#include "store/async_store.h"

namespace fleet {

class HorovodKv {
 public:
  using Respond = std::function<void(int status, std::string body)>;

  HorovodKv(const Assignment& assignment, std::shared_ptr<AsyncStore> store)
      : assignment_(assignment), store_(std::move(store)) {}

  // Calls back once, now or later; never after this object is gone.
  void answer(const HttpRequest& request, Respond respond);

  // How many ranks use a scope: "global_" all, "local_HOST" those of a node, "cross_N" one of each
  // node that has a local rank N. 0: no scope of Horovod's.
  int scope_size(const std::string& scope) const;

 private:
  void with_generation(const std::string& scope, const Respond& respond,
                       std::function<void(const std::string& prefix)> then);

  Assignment assignment_;
  std::shared_ptr<AsyncStore> store_;
};

}  // namespace fleet
