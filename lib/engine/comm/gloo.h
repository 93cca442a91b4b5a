// The backend "gloo": TCP between hosts. Gloo moves the bytes; the algorithms are our own, because
// Gloo's lack bfloat16, are slow for small messages, and cannot be aborted.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/running_clock.h"
#include "base/thread.h"
#include "comm/factory.h"
#include "comm/group.h"
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
  // Throws if the group has failed.
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
    // wait(): returns false if it was aborted.
    template <typename Wait>
    bool in_time(const Wait& wait);
    GlooLink& link_;
    const Operation& operation_;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
    // Under the lock of link_: the limit of the present wait, and whether it has passed.
    std::optional<RunningDeadline> deadline_;
    bool late_ = false;
  };

 private:
  bool fail(const Error& error);  // returns whether it is the first failure; later ones are ignored
  // Throws the error that explains why a message to or from `peer` failed.
  [[noreturn]] void explain(int peer, const Operation& operation, bool late,
                            const std::string& what);
  void watch_waits();  // Gloo's own limits would count the time in which this process did not run

  const CommOptions options_;
  const Group group_;
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Error> error_ FLEET_GUARDED_BY(mutex_);
  std::set<MessageBuffer*> buffers_ FLEET_GUARDED_BY(mutex_);
  bool ends_ FLEET_GUARDED_BY(mutex_) = false;
  std::unique_ptr<PeerMonitor> monitor_;
  std::shared_ptr<gloo::Context> context_;
  Thread watch_;  // last: it uses the rest
};

// all_reduce is a pipelined ring: a piece is reduced while the next one is in flight. Small
// messages use recursive doubling. One rank (or the same tree on all ranks) computes each element,
// so results are bitwise identical on all ranks and in every run. Partial sums of 16-bit types are
// rounded at each hop. Ranks listen on CommOptions::nodes[rank]. Traffic is neither encrypted nor
// authenticated.
class GlooCommunicator : public HostCommunicator {
 public:
  static std::unique_ptr<GlooCommunicator> make(const CommOptions& options);

  std::string name() const override { return "gloo"; }
  Buffer allocate(size_t bytes) override;
  // Needs no communication. The split groups share connections: a failure in one fails all.
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;
  std::unique_ptr<GlooCommunicator> subgroup(std::span<const int> ranks);
  void abort(const Error& why) override { link_->abort(why); }

  // For a group that works on behalf of a larger one: late ranks and messages are accounted to the
  // larger group's operation.
  void report_as(const GlooLink::Operation* operation) { reported_operation_ = operation; }
  GlooLink& link() { return *link_; }
  const std::vector<int>& members() const { return members_; }
  uint64_t id() const { return id_; }
  TrafficCounter& counter() { return traffic_; }

  void do_all_reduce(View in, View out, ReduceOp op) override;
  void do_reduce(View in, View out, ReduceOp op, int root) override;
  void do_broadcast(View data, int root) override;
  void do_all_gather(View in, View out) override;
  void do_reduce_scatter(View in, View out, ReduceOp op) override;
  void do_send(View data, int peer) override;
  void do_recv(View data, int peer) override;
  void do_barrier() override;

 private:
  GlooCommunicator(std::shared_ptr<GlooLink> link, Group group, std::vector<int> members,
                   uint64_t id);
  void begin();
  char* scratch(size_t bytes);
  View copy_of(View view);  // valid until the next call
  void all_reduce_small(View data, ReduceOp op);
  // The two halves of a ring all_reduce over `data`, cut into size() parts of `part` elements (the
  // last ones may be shorter or empty). Rank r holds part r before gathering and after reducing.
  void ring(View data, size_t part, ReduceOp op, bool reduce, bool gather);
  void reduce_chain(View in, View out, ReduceOp op, int root);
  void broadcast_tree(View data, int root);
  void broadcast_chain(View data, int root);

  const std::shared_ptr<GlooLink> link_;
  const std::vector<int> members_;  // as ranks of the link
  const uint64_t id_;               // equal on all members; the upper bits of the slots
  GlooLink::Operation operation_;
  const GlooLink::Operation* reported_operation_ = &operation_;
  std::vector<char> scratch_, copy_;  // never shrink
  std::map<std::vector<int>, int> splits_;
};

}  // namespace fleet
