// One connected Gloo context: messages between ranks that can be aborted and whose failures name
// ranks. Groups split from one another share it, and its fate.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "comm/lifeline.h"

namespace gloo {
class Context;
namespace transport {
class UnboundBuffer;
}
}  // namespace gloo

namespace fleet {

class GlooLink {
 public:
  // Collective over the ranks of options.
  explicit GlooLink(const CommOptions& options);
  ~GlooLink();

  const Group& group() const { return group_; }
  Lifeline& lifeline() { return *lifeline_; }
  // Throws what has gone wrong, if something has.
  void check() const;
  void abort(const Error& why);

  // An operation that a wait belongs to: who takes part, and which it is, to find out who is late;
  // and where its messages are counted.
  struct Operation {
    const std::vector<int>* ranks;  // of the link
    uint64_t group_id, count;
    TrafficCounter* traffic;
  };

  // Names of those who are late in it, or "".
  std::string late_names(const Operation& operation);

  // A piece of memory from which and into which messages go. Messages between two ranks with one
  // slot arrive in order; every wait is for the oldest message not yet waited for. The memory must
  // stay until all are waited for, or one has thrown.
  class Wire {
   public:
    Wire(GlooLink& link, const Operation& operation, void* data, size_t bytes);
    ~Wire();
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
  bool fail(const Error& error);  // whether it is the first: only that one counts
  // Throws what explains that a message to or from `peer` failed.
  [[noreturn]] void explain(int peer, const Operation& operation, bool late,
                            const std::string& what);

  const CommOptions options_;
  const Group group_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> error_;
  std::set<Wire*> wires_;
  std::unique_ptr<Lifeline> lifeline_;
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace fleet
