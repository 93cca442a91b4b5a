// One connected Gloo context. Messages between ranks can be aborted, and failures name ranks.
// Groups split from one another share it: a failure in one fails all.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "comm/factory.h"
#include "comm/peer_monitor.h"

namespace gloo {
class Context;
namespace transport {
class UnboundBuffer;
}
}  // namespace gloo

namespace fleet {

class GlooLink {
 public:
  // Collective over the ranks in `options`.
  explicit GlooLink(const CommOptions& options);
  ~GlooLink();

  const Group& group() const { return group_; }
  PeerMonitor& peer_monitor() { return *monitor_; }
  // Throws the group's failure, if there is one.
  void check() const;
  void abort(const Error& why);

  // The operation that a wait belongs to: its ranks and its number, to find late ranks, and the
  // counter of its traffic.
  struct Operation {
    const std::vector<int>* ranks;  // as ranks of the link
    uint64_t group_id, count;
    TrafficCounter* traffic;
  };

  // Names of the late ranks in it, or "".
  std::string late_names(const Operation& operation);

  // Memory that messages are sent from and received into. Messages between two ranks with the same
  // slot arrive in order; each wait completes the oldest message not yet waited for. The memory
  // must stay valid until all waits have returned or one has thrown.
  class MessageBuffer {
   public:
    MessageBuffer(GlooLink& link, const Operation& operation, void* data, size_t bytes);
    ~MessageBuffer();
    void send(int to, uint64_t slot, size_t offset, size_t bytes);
    void recv(int from, uint64_t slot, size_t offset, size_t bytes);
    void wait_send(int to);
    void wait_recv(int from);

   private:
    friend class GlooLink;
    template <typename Body>
    void guarded(int peer, const Body& body);
    GlooLink& link_;
    const Operation& operation_;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  };

 private:
  bool fail(const Error& error);  // returns whether it is the first failure; later ones are ignored
  // Throws the error that explains why a message to or from `peer` failed.
  [[noreturn]] void explain(int peer, const Operation& operation, bool late,
                            const std::string& what);

  const CommOptions options_;
  const Group group_;
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Error> error_ FLEET_GUARDED_BY(mutex_);
  std::set<MessageBuffer*> buffers_ FLEET_GUARDED_BY(mutex_);
  std::unique_ptr<PeerMonitor> monitor_;
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace fleet
