// The backends "shm" (processes or threads of one host) and "inprocess" (threads of one process).
// Every rank works directly on the memory of all ranks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "comm/control_block.h"
#include "comm/factory.h"

namespace fleet {

// An anonymous shared file (memfd) mapped into this process. It has no name in any file system and
// disappears with its last process, however that ends. For ranks that are threads of one process,
// it is plain memory that they share.
class Segment : public std::enable_shared_from_this<Segment> {
 public:
  // Zeroed and page-aligned. Pages are allocated on first touch. kUnsupported if the system cannot
  // provide it.
  static std::shared_ptr<Segment> create_shared(size_t bytes);
  static std::shared_ptr<Segment> create_in_process(size_t bytes);
  // Attaches to the segment of the creator's handle(). kPeerLost if the creator is gone, kUsage if
  // it is in-process memory of another process.
  static std::shared_ptr<Segment> attach(const std::string& handle);
  ~Segment();
  Segment(const Segment&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  uint64_t id() const { return id_; }  // random; the same in every attached process
  bool in_process() const { return in_process_; }

  // The text that other processes of this host need to attach; valid until close_handle(). Creator
  // only.
  std::string handle();
  void close_handle();  // attached processes may call it too, once they no longer need reserve()
  // Allocates the memory of [offset, offset + bytes) now, near the calling thread, so that a later
  // touch cannot fail. kUnsupported if the machine has too little memory.
  void reserve(size_t offset, size_t bytes);
  // Maps the pages into this process ahead of use.
  void populate();

 private:
  Segment() = default;
  char* data_ = nullptr;
  size_t bytes_ = 0;
  uint64_t id_ = 0;
  bool in_process_ = false;
  UniqueFd fd_;
  std::shared_ptr<Segment>* self_ = nullptr;  // target of an in-process handle
};

// A thread that sleeps until one of the processes ends (pidfd), then calls `died` with the
// positions of the ended ones in `pids`. Ignores the position of this process and pids <= 0. The
// destructor stops the thread; `died` is not called after it. Where the kernel has no pidfds, or a
// container's filter refuses them, it looks at the processes every 100 ms instead.
class ProcessExitWatcher {
 public:
  // `open_pidfd`: pidfd_open(2), or -1 and errno; tests replace it.
  ProcessExitWatcher(const std::vector<int>& pids,
                     std::function<void(const std::vector<int>&)> died,
                     int (*open_pidfd)(int pid) = nullptr);
  ~ProcessExitWatcher();

 private:
  struct Peer {
    int position;
    int pid;
    UniqueFd pidfd;       // none: its state is read
    std::string started;  // when: tells the process from a later one with its pid
    bool ended = false;
  };
  void run();
  static bool has_ended(const Peer& peer);
  std::vector<Peer> peers_;
  std::vector<int> gone_;  // already dead when the watch began
  std::function<void(const std::vector<int>&)> died_;
  UniqueFd stop_;
  Thread thread_;
};

// The shared memory that a group can access: its own and that of the groups it was split from.
// Grows with allocate() and lives as long as any communicator of the family.
class SegmentTable {
 public:
  explicit SegmentTable(std::shared_ptr<const SegmentTable> parent) : parent_(std::move(parent)) {}
  void add(std::shared_ptr<Segment> segment);
  // The shared address, if the memory is in a segment that every rank of the group can access;
  // otherwise {}.
  SharedAddress shared_address_of(const void* data, size_t bytes) const;
  // This process's address of a shared address; never null for that of another rank of the group.
  char* local_address_of(const SharedAddress& address) const;

 private:
  const std::shared_ptr<const SegmentTable> parent_;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Segment>> segments_ FLEET_GUARDED_BY(mutex_);
};

// Memory from allocate() is reduced in place without copies: rank r reduces the r-th part of all
// ranks' buffers and writes the result to all of them. Other memory goes through a staging area in
// pieces, and small messages through slots, with one synchronization.
// Sums are in rank order: bitwise identical on all ranks and in all runs.
// send() waits until the receiver has taken all but the last 128 KiB.
class SharedMemoryCommunicator : public HostCommunicator {
 public:
  // Collective. `in_process`: ranks are threads of this process, which share all of its memory.
  static std::unique_ptr<SharedMemoryCommunicator> make(const CommOptions& options,
                                                        bool in_process);
  ~SharedMemoryCommunicator() override;

  std::string name() const override { return in_process_ ? "inprocess" : "shm"; }
  Buffer allocate(size_t bytes) override;
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;
  void abort(const Error& why) override { control_block_->abort(why); }
  ControlBlock& control_block() { return *control_block_; }

  void do_all_reduce(View in, View out, ReduceOp op) override;
  void do_reduce(View in, View out, ReduceOp op, int root) override;
  void do_broadcast(View data, int root) override;
  void do_all_gather(View in, View out) override;
  void do_reduce_scatter(View in, View out, ReduceOp op) override;
  void do_send(View data, int peer) override;
  void do_recv(View data, int peer) override;
  void do_barrier() override;

 private:
  struct Mailbox;  // from one sender to one receiver

  SharedMemoryCommunicator(const CommOptions& options, bool in_process,
                           std::shared_ptr<const SegmentTable> parent);
  void set_up_group();
  static size_t control_bytes(int size);
  char* slot(int rank) const;
  char* stage(int rank) const;
  Mailbox* mailbox(int from, int to) const;

  SharedAddress shared_address_of(const View& view) const;
  // Performs a step that publishes addresses. Returns true if all published addresses are shared;
  // ins_ and outs_ then point to all ranks' memory (null where nothing was published).
  bool publish(const StepOperation& call, SharedAddress in, SharedAddress out);
  void step(const StepOperation& call) { control_block_->step(ControlBlock::kStream, call); }
  // Reduces this rank's part of `count` elements of all `ins` into the outs. Returns the size of
  // the part in bytes.
  size_t reduce_part(DType dtype, ReduceOp op, char* const* outs, int n_out, char* const* ins,
                     size_t count);
  // Makes a small message known to all ranks, in this rank's slot. False: it is too large.
  bool exchange_slots(const StepOperation& call, const View& data, bool writes = true);
  // Reduces elements of all ranks' slots, starting at byte `offset`, into out.
  void reduce_slots(DType dtype, ReduceOp op, void* out, size_t offset, size_t count);

  // Counts the bytes that operations move between ranks, whichever rank copies them.
  size_t others() const { return static_cast<size_t>(size()) - 1; }
  void count_same(size_t bytes);  // sent and received
  void count_all_reduce(size_t bytes, size_t own_part);
  void count_reduce(size_t bytes, size_t own_part, bool is_root);
  // Each other rank gives the root `to_root` bytes and gets `from_root` bytes from it.
  void count_to_or_from(bool is_root, size_t to_root, size_t from_root);

  const CommOptions options_;
  const bool in_process_;
  std::shared_ptr<SegmentTable> table_;
  std::shared_ptr<Segment> control_;
  std::unique_ptr<ControlBlock> control_block_;
  std::unique_ptr<ProcessExitWatcher> exit_watcher_;
  uint64_t small_calls_ = 0;                // its parity selects the slots; the same on all ranks
  std::vector<char*> ins_, outs_, stages_;  // all ranks'
  std::vector<void*> to_;
  std::vector<const void*> from_;
  std::map<std::vector<int>, int> splits_;  // how often each group was split off
};

}  // namespace fleet
