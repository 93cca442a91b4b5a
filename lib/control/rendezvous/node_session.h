// The host's end of one node's stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rendezvous/membership.h"

namespace fleet {

// A serialized wire::HostMessage in parts, which concatenate to it. A message to thousands of nodes
// is encoded once, and they share its parts.
using EncodedMessage = std::vector<std::shared_ptr<const std::string>>;

class NodeSession {
 public:
  SessionId id() const { return id_; }
  // Both are called under the lock of JobHost; they do not block and do not call it.
  virtual void send(EncodedMessage message) = 0;
  virtual void end() = 0;  // after pending messages; JobHost::on_session_done() follows

 protected:
  virtual ~NodeSession() = default;  // sessions delete themselves

 private:
  friend class JobHost;
  SessionId id_ = 0;  // set by JobHost::open()
};

}  // namespace fleet
