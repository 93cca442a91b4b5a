#include "comm/shared_memory.h"

#include <algorithm>
#include <cstring>

#include "comm/reduce.h"
#include "tensor/host.h"

namespace fleet {
namespace {

constexpr size_t kSlotBytes = 16 << 10;    // largest small message of a rank
constexpr size_t kStageBytes = 512 << 10;  // per rank, for memory that other ranks cannot access
// Each rank's part begins at a multiple of this, so that parts share no cache line.
constexpr size_t kPartElements = 1024;
constexpr size_t kHugePage = size_t{2} << 20;

// Values of SharedAddress::segment. The ids of segments are odd.
constexpr uint64_t kHidden = 0, kNothing = 2, kAddress = 4;
constexpr SharedAddress kNotNeeded = {kNothing, 0};

bool overlap(const View& a, const View& b) {
  const char *a_begin = static_cast<char*>(a.data), *b_begin = static_cast<char*>(b.data);
  return a_begin < b_begin + b.bytes() && b_begin < a_begin + a.bytes();
}

void copy(void* to, const void* from, size_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

}  // namespace

std::unique_ptr<SharedMemoryCommunicator> SharedMemoryCommunicator::make(const CommOptions& options,
                                                                         bool in_process) {
  return std::unique_ptr<SharedMemoryCommunicator>(
      new SharedMemoryCommunicator(options, in_process, nullptr));
}

SharedMemoryCommunicator::SharedMemoryCommunicator(const CommOptions& options, bool in_process,
                                                   std::shared_ptr<const SegmentTable> parent)
    : HostCommunicator({options.rank, options.size, options.names}),
      options_(options),
      in_process_(in_process),
      table_(std::make_shared<SegmentTable>(std::move(parent))),
      ins_(options.size),
      outs_(options.size),
      to_(options.size),
      from_(options.size) {
  set_up_group();
  for (int rank = 0; rank < size(); ++rank) stages_.push_back(stage(rank));
}

SharedMemoryCommunicator::~SharedMemoryCommunicator() = default;

// Control block, slots, stages and boxes. The file is sparse: untouched parts take no memory.
size_t SharedMemoryCommunicator::control_bytes(int size) {
  const auto n = static_cast<size_t>(size);
  return ControlBlock::bytes(size) + n * (2 * kSlotBytes + kStageBytes + n * sizeof(Mailbox));
}

char* SharedMemoryCommunicator::slot(int rank) const {
  return control_->data() + ControlBlock::bytes(size()) +
         (rank * 2 + small_calls_ % 2) * kSlotBytes;
}

char* SharedMemoryCommunicator::stage(int rank) const {
  return control_->data() + ControlBlock::bytes(size()) + size() * 2 * kSlotBytes +
         rank * kStageBytes;
}

Mailbox* SharedMemoryCommunicator::mailbox(int from, int to) const {
  return reinterpret_cast<Mailbox*>(stage(size())) + from * size() + to;
}

void SharedMemoryCommunicator::set_up_group() {
  const std::string key = options_.group + "/handle";
  if (rank() == 0) {
    control_ = in_process_ ? Segment::create_in_process(control_bytes(size()))
                           : Segment::create_shared(control_bytes(size()));
    if (size() > 1) options_.store->set(key, control_->handle());
  } else {
    std::string handle;
    try {
      handle = options_.store->get(key, options_.timeout);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout) throw;
      throw Error(
          ErrorCode::kTimeout,
          group_.name_of(0) + " did not arrive to create the group '" + options_.group + "'",
          "communicator", "look at the log of that rank");
    }
    control_ = Segment::attach(handle);
    FLEET_CHECK(control_->bytes() >= control_bytes(size()), "ranks disagree on the group's size");
  }
  control_block_ = std::make_unique<ControlBlock>(control_->data(), group_, options_.timeout);
  control_block_->wait_for_all_ranks();
  if (rank() == 0 || !in_process_) control_->close_handle();  // threads share the Segment itself
  std::vector<int> pids;
  for (int rank = 0; rank < size(); ++rank) pids.push_back(control_block_->pid_of(rank));
  exit_watcher_ =
      std::make_unique<ProcessExitWatcher>(pids, [this, pids](const std::vector<int>& died) {
        for (int rank : died) {
          if (control_block_->has_left(rank)) continue;
          control_block_->fail_all(
              Error(ErrorCode::kPeerLost,
                    group_.name_of(rank) + " (process " + std::to_string(pids[rank]) + ") died",
                    "communicator", "look at the log of that rank"));
        }
      });
}

Buffer SharedMemoryCommunicator::allocate(size_t bytes) {
  control_block_->check();
  if (bytes == 0) return {};
  if (in_process_) return HostDevice().allocate(bytes);  // every thread can access it
  const size_t unit = bytes >= kHugePage ? kHugePage : 4096;
  const size_t stride = (bytes + unit - 1) / unit * unit;
  const StepOperation call = {.name = "allocate", .count = bytes};
  std::shared_ptr<Segment> segment;
  try {
    if (rank() == 0) {
      segment = Segment::create_shared(stride * size());
      const std::string handle = segment->handle();
      FLEET_CHECK(handle.size() < ControlBlock::kNoticeBytes,
                  "the text of a segment handle is too long");
      std::memcpy(control_block_->notice(), handle.c_str(), handle.size() + 1);
    }
    control_block_->step(ControlBlock::kHost, call);
    if (rank() != 0) segment = Segment::attach(control_block_->notice());
    segment->reserve(rank() * stride, stride);
  } catch (const Error& error) {
    throw control_block_->fail_all(error);
  }
  control_block_->step(ControlBlock::kHost, call);
  segment->close_handle();
  segment->populate();
  table_->add(segment);
  return Buffer(std::shared_ptr<void>(segment, segment->data() + rank() * stride), bytes);
}

std::unique_ptr<Communicator> SharedMemoryCommunicator::split(std::span<const int> ranks) {
  control_block_->check();
  const Group sub = group_.subgroup(ranks);
  CommOptions options = options_;
  options.rank = sub.rank;
  options.size = sub.size;
  options.names = sub.names;
  options.nodes.clear();
  for (int rank : ranks) {
    options.group += (options.nodes.empty() ? "/" : ",") + std::to_string(rank);
    options.nodes.push_back(options_.nodes[rank]);
  }
  options.group += "#" + std::to_string(splits_[std::vector<int>(ranks.begin(), ranks.end())]++);
  return std::unique_ptr<Communicator>(new SharedMemoryCommunicator(options, in_process_, table_));
}

SharedAddress SharedMemoryCommunicator::shared_address_of(const View& view) const {
  if (in_process_) return {kAddress, reinterpret_cast<uint64_t>(view.data)};
  return table_->shared_address_of(view.data, view.bytes());
}

bool SharedMemoryCommunicator::publish(const StepOperation& call, SharedAddress in,
                                       SharedAddress out) {
  control_block_->step_and_publish(call, in, out);
  for (int rank = 0; rank < size(); ++rank) {
    if (control_block_->input_of(rank).segment == kHidden ||
        control_block_->output_of(rank).segment == kHidden) {
      return false;
    }
  }
  const auto resolve = [this](const SharedAddress& address) -> char* {
    if (address.segment == kNothing) return nullptr;
    // An address of this process, which a peer handed back.
    if (address.segment == kAddress)
      return reinterpret_cast<char*>(address.offset);  // NOLINT(performance-no-int-to-ptr)
    return table_->local_address_of(address);
  };
  for (int rank = 0; rank < size(); ++rank) {
    ins_[rank] = resolve(control_block_->input_of(rank));
    outs_[rank] = resolve(control_block_->output_of(rank));
  }
  return true;
}

size_t SharedMemoryCommunicator::reduce_part(DType dtype, ReduceOp op, char* const* outs, int n_out,
                                             char* const* ins, size_t count) {
  const size_t even = (count + size() - 1) / size();
  const size_t part = (even + kPartElements - 1) / kPartElements * kPartElements;
  const size_t begin = std::min(rank() * part, count), end = std::min(begin + part, count);
  const size_t offset = begin * size_of(dtype);
  for (int i = 0; i < size(); ++i) from_[i] = ins[i] + offset;
  for (int i = 0; i < n_out; ++i) to_[i] = outs[i] + offset;
  reduce_elements(dtype, op, to_.data(), n_out, from_.data(), size(), end - begin);
  return (end - begin) * size_of(dtype);
}

void SharedMemoryCommunicator::count_same(size_t bytes) {
  traffic_.sent(bytes);
  traffic_.received(bytes);
}

// Each rank reads its part of `bytes` from the others and writes the result to them.
void SharedMemoryCommunicator::count_all_reduce(size_t bytes, size_t own_part) {
  count_same(bytes - own_part + others() * own_part);
}

// Each rank reads its part of `bytes` from the others and writes the result to the root.
void SharedMemoryCommunicator::count_reduce(size_t bytes, size_t own_part, bool is_root) {
  traffic_.sent(bytes - own_part + (is_root ? 0 : own_part));
  traffic_.received(others() * own_part + (is_root ? bytes - own_part : 0));
}

void SharedMemoryCommunicator::count_to_or_from(bool is_root, size_t to_root, size_t from_root) {
  if (is_root) {
    traffic_.sent(others() * from_root);
    traffic_.received(others() * to_root);
  } else {
    traffic_.sent(to_root);
    traffic_.received(from_root);
  }
}

bool SharedMemoryCommunicator::exchange_slots(const StepOperation& call, const View& data,
                                              bool writes) {
  if (data.bytes() > kSlotBytes) return false;
  ++small_calls_;
  if (writes) copy(slot(rank()), data.data, data.bytes());
  step(call);
  return true;
}

void SharedMemoryCommunicator::reduce_slots(DType dtype, ReduceOp op, void* out, size_t offset,
                                            size_t count) {
  for (int rank = 0; rank < size(); ++rank) ins_[rank] = slot(rank) + offset;
  reduce_elements(dtype, op, &out, 1, reinterpret_cast<const void* const*>(ins_.data()), size(),
                  count);
}

void SharedMemoryCommunicator::do_all_reduce(View in, View out, ReduceOp op) {
  control_block_->check();
  const StepOperation call = {"all_reduce", in.dtype, op, 0, in.count};
  if (exchange_slots(call, in)) {
    reduce_slots(in.dtype, op, out.data, 0, in.count);
    count_same(others() * in.bytes());
    return;
  }
  if (publish(call, shared_address_of(in), shared_address_of(out))) {
    const size_t own = reduce_part(in.dtype, op, outs_.data(), size(), ins_.data(), in.count);
    step(call);
    count_all_reduce(in.bytes(), own);
    return;
  }
  const size_t piece = kStageBytes / size_of(in.dtype);
  for (size_t done = 0; done < in.count; done += piece) {
    const View part = in.part(done, std::min(piece, in.count - done));
    copy(stage(rank()), part.data, part.bytes());
    step(call);
    const size_t own =
        reduce_part(in.dtype, op, stages_.data(), size(), stages_.data(), part.count);
    step(call);
    count_all_reduce(part.bytes(), own);
    copy(out.at(done), stage(rank()), part.bytes());
  }
}

void SharedMemoryCommunicator::do_reduce(View in, View out, ReduceOp op, int root) {
  control_block_->check();
  const StepOperation call = {"reduce", in.dtype, op, root, in.count};
  const bool is_root = rank() == root;
  if (exchange_slots(call, in)) {
    if (is_root) reduce_slots(in.dtype, op, out.data, 0, in.count);
    count_to_or_from(is_root, in.bytes(), 0);
    return;
  }
  if (publish(call, shared_address_of(in), is_root ? shared_address_of(out) : kNotNeeded)) {
    const size_t own = reduce_part(in.dtype, op, &outs_[root], 1, ins_.data(), in.count);
    step(call);
    count_reduce(in.bytes(), own, is_root);
    return;
  }
  const size_t piece = kStageBytes / size_of(in.dtype);
  for (size_t done = 0; done < in.count; done += piece) {
    const View part = in.part(done, std::min(piece, in.count - done));
    copy(stage(rank()), part.data, part.bytes());
    step(call);
    const size_t own = reduce_part(in.dtype, op, &stages_[root], 1, stages_.data(), part.count);
    step(call);
    count_reduce(part.bytes(), own, is_root);
    if (is_root) copy(out.at(done), stage(rank()), part.bytes());
  }
}

void SharedMemoryCommunicator::do_broadcast(View data, int root) {
  control_block_->check();
  const StepOperation call = {"broadcast", data.dtype, ReduceOp::kSum, root, data.count};
  const bool is_root = rank() == root;
  count_to_or_from(is_root, 0, data.bytes());
  if (exchange_slots(call, data, is_root)) {
    if (!is_root) copy(data.data, slot(root), data.bytes());
    return;
  }
  if (publish(call, is_root ? shared_address_of(data) : kNotNeeded, kNotNeeded)) {
    if (!is_root) copy(data.data, ins_[root], data.bytes());
    step(call);
    return;
  }
  const size_t piece = kStageBytes / size_of(data.dtype);
  for (size_t done = 0; done < data.count; done += piece) {
    const View part = data.part(done, std::min(piece, data.count - done));
    if (is_root) copy(stage(root), part.data, part.bytes());
    step(call);
    if (!is_root) copy(part.data, stage(root), part.bytes());
    step(call);
  }
}

void SharedMemoryCommunicator::do_all_gather(View in, View out) {
  control_block_->check();
  const StepOperation call = {"all_gather", in.dtype, ReduceOp::kSum, 0, in.count};
  count_same(others() * in.bytes());
  if (exchange_slots(call, in)) {
    for (int r = 0; r < size(); ++r) copy(out.at(r * in.count), slot(r), in.bytes());
    return;
  }
  // Others read `in` while this rank writes `out`, so they must not overlap unless `in` is at its
  // own position in `out`.
  const bool apart = in.data == out.at(rank() * in.count) || !overlap(in, out);
  if (publish(call, apart ? shared_address_of(in) : SharedAddress{}, kNotNeeded)) {
    for (int r = 0; r < size(); ++r) copy(out.at(r * in.count), ins_[r], in.bytes());
    step(call);
    return;
  }
  const size_t piece = kStageBytes / size_of(in.dtype);
  for (size_t done = 0; done < in.count; done += piece) {
    const View part = in.part(done, std::min(piece, in.count - done));
    copy(stage(rank()), part.data, part.bytes());
    step(call);
    for (int r = 0; r < size(); ++r) copy(out.at(r * in.count + done), stage(r), part.bytes());
    step(call);
  }
}

void SharedMemoryCommunicator::do_reduce_scatter(View in, View out, ReduceOp op) {
  control_block_->check();
  const StepOperation call = {"reduce_scatter", in.dtype, op, 0, out.count};
  const size_t element = size_of(in.dtype);
  count_same(others() * out.bytes());
  if (exchange_slots(call, in)) {
    reduce_slots(in.dtype, op, out.data, rank() * out.bytes(), out.count);
    return;
  }
  const bool apart = out.data == in.at(rank() * out.count) || !overlap(in, out);
  if (publish(call, apart ? shared_address_of(in) : SharedAddress{}, kNotNeeded)) {
    for (char*& from : ins_) from += rank() * out.bytes();
    reduce_elements(in.dtype, op, &out.data, 1, reinterpret_cast<const void* const*>(ins_.data()),
                    size(), out.count);
    step(call);
    return;
  }
  // A stage holds the same piece of every rank's part.
  const size_t piece = kStageBytes / element / size();
  for (size_t done = 0; done < out.count; done += piece) {
    const size_t count = std::min(piece, out.count - done);
    for (int r = 0; r < size(); ++r) {
      copy(stage(rank()) + r * piece * element, in.at(r * out.count + done), count * element);
    }
    step(call);
    for (int r = 0; r < size(); ++r) ins_[r] = stage(r) + rank() * piece * element;
    void* to = out.at(done);
    reduce_elements(in.dtype, op, &to, 1, reinterpret_cast<const void* const*>(ins_.data()), size(),
                    count);
    step(call);
  }
}

void SharedMemoryCommunicator::do_send(View data, int peer) {
  control_block_->check();
  traffic_.sent(data.bytes());
  send_message(*mailbox(rank(), peer), data, *control_block_, peer);
}

void SharedMemoryCommunicator::do_recv(View data, int peer) {
  control_block_->check();
  traffic_.received(data.bytes());
  receive_message(*mailbox(peer, rank()), data, *control_block_, group_, peer);
}

void SharedMemoryCommunicator::do_barrier() {
  control_block_->check();
  step({.name = "barrier"});
}

FLEET_COMM_BACKEND(shm) {
  def.make = [](const CommOptions& options) -> std::unique_ptr<Communicator> {
    return SharedMemoryCommunicator::make(options, false);
  };
}

FLEET_COMM_BACKEND(inprocess) {
  def.make = [](const CommOptions& options) -> std::unique_ptr<Communicator> {
    return SharedMemoryCommunicator::make(options, true);
  };
}

}  // namespace fleet
