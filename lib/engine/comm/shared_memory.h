// The backends "shm" (processes or threads of one host) and "inprocess" (threads of one process).
// Every rank works directly on the memory of all ranks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/control_block.h"
#include "comm/factory.h"
#include "comm/mailbox.h"
#include "comm/process_exit_watcher.h"
#include "comm/segment.h"
#include "comm/segment_table.h"

namespace fleet {

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
