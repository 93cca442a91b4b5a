#include "comm/shared.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "comm/reduce.h"
#include "tensor/host.h"

namespace fleet {
namespace {

constexpr size_t kSlotBytes = 16 << 10;    // largest small message of a rank
constexpr size_t kStageBytes = 512 << 10;  // per rank, for memory that other ranks cannot access
constexpr size_t kBoxBytes = 64 << 10;     // for one piece of a message between two ranks
// Each rank's part begins at a multiple of this, so that parts share no cache line.
constexpr size_t kPartElements = 1024;
constexpr size_t kHugePage = size_t{2} << 20;

// Values of Place::segment. The ids of segments are odd.
constexpr uint64_t kHidden = 0, kNothing = 2, kAddress = 4;
constexpr Place kNotNeeded = {kNothing, 0};

bool overlap(const View& a, const View& b) {
  const char *a_begin = static_cast<char*>(a.data), *b_begin = static_cast<char*>(b.data);
  return a_begin < b_begin + b.bytes() && b_begin < a_begin + a.bytes();
}

char* at(const View& view, size_t element) {
  return static_cast<char*>(view.data) + element * size_of(view.dtype);
}

void copy(void* to, const void* from, size_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

}  // namespace

void SegmentTable::add(std::shared_ptr<Segment> segment) {
  std::lock_guard lock(mutex_);
  segments_.push_back(std::move(segment));
}

Place SegmentTable::place_of(const void* data, size_t bytes) const {
  const auto* begin = static_cast<const char*>(data);
  {
    std::lock_guard lock(mutex_);
    for (const auto& segment : segments_) {
      if (begin >= segment->data() && begin + bytes <= segment->data() + segment->bytes()) {
        return {segment->id(), static_cast<uint64_t>(begin - segment->data())};
      }
    }
  }
  return parent_ ? parent_->place_of(data, bytes) : Place{};
}

char* SegmentTable::address_of(const Place& place) const {
  {
    std::lock_guard lock(mutex_);
    for (const auto& segment : segments_) {
      if (segment->id() == place.segment) return segment->data() + place.offset;
    }
  }
  FLEET_CHECK(parent_, "a rank published memory that this rank does not know");
  return parent_->address_of(place);
}

struct SharedCommunicator::Box {
  alignas(128) std::atomic<uint64_t> sent;
  alignas(128) std::atomic<uint64_t> taken;
  alignas(64) uint64_t message_bytes[2];
  alignas(64) char pieces[2][kBoxBytes];
};

std::unique_ptr<SharedCommunicator> SharedCommunicator::make(const CommOptions& options,
                                                             bool in_process) {
  return std::unique_ptr<SharedCommunicator>(new SharedCommunicator(options, in_process, nullptr));
}

SharedCommunicator::SharedCommunicator(const CommOptions& options, bool in_process,
                                       std::shared_ptr<const SegmentTable> parent)
    : HostCommunicator({options.rank, options.size, options.names}),
      options_(options),
      in_process_(in_process),
      table_(std::make_shared<SegmentTable>(std::move(parent))),
      ins_(options.size),
      outs_(options.size),
      to_(options.size),
      from_(options.size) {
  meet();
  for (int rank = 0; rank < size(); ++rank) stages_.push_back(stage(rank));
}

SharedCommunicator::~SharedCommunicator() = default;

// Control block, slots, stages and boxes. The file is sparse: untouched parts take no memory.
size_t SharedCommunicator::control_bytes(int size) {
  const auto n = static_cast<size_t>(size);
  return Board::bytes(size) + n * (2 * kSlotBytes + kStageBytes + n * sizeof(Box));
}

char* SharedCommunicator::slot(int rank) const {
  return control_->data() + Board::bytes(size()) + (rank * 2 + small_calls_ % 2) * kSlotBytes;
}

char* SharedCommunicator::stage(int rank) const {
  return control_->data() + Board::bytes(size()) + size() * 2 * kSlotBytes + rank * kStageBytes;
}

SharedCommunicator::Box* SharedCommunicator::box(int from, int to) const {
  return reinterpret_cast<Box*>(stage(size())) + from * size() + to;
}

void SharedCommunicator::meet() {
  const std::string key = options_.group + "/door";
  if (rank() == 0) {
    control_ = in_process_ ? Segment::create_in_process(control_bytes(size()))
                           : Segment::create_shared(control_bytes(size()));
    if (size() > 1) options_.store->set(key, control_->door());
  } else {
    std::string door;
    try {
      door = options_.store->get(key, options_.timeout);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout) throw;
      throw Error(
          ErrorCode::kTimeout,
          group_.name_of(0) + " did not arrive to create the group '" + options_.group + "'",
          "communicator", "look at the log of that rank");
    }
    control_ = Segment::attach(door);
    FLEET_CHECK(control_->bytes() >= control_bytes(size()), "ranks disagree on the group's size");
  }
  board_ = std::make_unique<Board>(control_->data(), group_, options_.timeout);
  board_->wait_for_everyone_here();
  if (rank() == 0 || !in_process_) control_->close_door();  // threads share the Segment itself
  std::vector<int> pids;
  for (int rank = 0; rank < size(); ++rank) pids.push_back(board_->pid_of(rank));
  watch_ = std::make_unique<PeerWatch>(pids, [this, pids](const std::vector<int>& died) {
    for (int rank : died) {
      if (board_->has_left(rank)) continue;
      board_->raise(
          Error(ErrorCode::kPeerLost,
                group_.name_of(rank) + " (process " + std::to_string(pids[rank]) + ") died",
                "communicator", "look at the log of that rank"));
    }
  });
}

Buffer SharedCommunicator::allocate(size_t bytes) {
  board_->check();
  if (bytes == 0) return {};
  if (in_process_) return HostDevice().allocate(bytes);  // every thread can access it
  const size_t unit = bytes >= kHugePage ? kHugePage : 4096;
  const size_t stride = (bytes + unit - 1) / unit * unit;
  const Call call = {.name = "allocate", .count = bytes};
  std::shared_ptr<Segment> segment;
  try {
    if (rank() == 0) {
      segment = Segment::create_shared(stride * size());
      const std::string door = segment->door();
      FLEET_CHECK(door.size() < Board::kNoticeBytes, "the text of a segment handle is too long");
      std::memcpy(board_->notice(), door.c_str(), door.size() + 1);
    }
    board_->step(Board::kHost, call);
    if (rank() != 0) segment = Segment::attach(board_->notice());
    segment->reserve(rank() * stride, stride);
  } catch (const Error& error) {
    throw board_->raise(error);
  }
  board_->step(Board::kHost, call);
  segment->close_door();
  segment->populate();
  table_->add(segment);
  return Buffer(std::shared_ptr<void>(segment, segment->data() + rank() * stride), bytes);
}

std::unique_ptr<Communicator> SharedCommunicator::split(std::span<const int> ranks) {
  board_->check();
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
  return std::unique_ptr<Communicator>(new SharedCommunicator(options, in_process_, table_));
}

Place SharedCommunicator::place_of(const View& view) const {
  if (in_process_) return {kAddress, reinterpret_cast<uint64_t>(view.data)};
  return table_->place_of(view.data, view.bytes());
}

bool SharedCommunicator::show(const Call& call, Place in, Place out) {
  board_->step_showing(call, in, out);
  for (int rank = 0; rank < size(); ++rank) {
    if (board_->in_of(rank).segment == kHidden || board_->out_of(rank).segment == kHidden) {
      return false;
    }
  }
  const auto resolve = [this](const Place& place) -> char* {
    if (place.segment == kNothing) return nullptr;
    if (place.segment == kAddress) return reinterpret_cast<char*>(place.offset);
    return table_->address_of(place);
  };
  for (int rank = 0; rank < size(); ++rank) {
    ins_[rank] = resolve(board_->in_of(rank));
    outs_[rank] = resolve(board_->out_of(rank));
  }
  return true;
}

size_t SharedCommunicator::reduce_part(DType dtype, ReduceOp op, char* const* outs, int n_out,
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

void SharedCommunicator::count_same(size_t bytes) {
  traffic_.sent(bytes);
  traffic_.received(bytes);
}

// Each rank reads its part of `bytes` from the others and writes the result to them.
void SharedCommunicator::count_all_reduce(size_t bytes, size_t own_part) {
  count_same(bytes - own_part + others() * own_part);
}

// Each rank reads its part of `bytes` from the others and writes the result to the root.
void SharedCommunicator::count_reduce(size_t bytes, size_t own_part, bool is_root) {
  traffic_.sent(bytes - own_part + (is_root ? 0 : own_part));
  traffic_.received(others() * own_part + (is_root ? bytes - own_part : 0));
}

void SharedCommunicator::count_to_or_from(bool is_root, size_t to_root, size_t from_root) {
  if (is_root) {
    traffic_.sent(others() * from_root);
    traffic_.received(others() * to_root);
  } else {
    traffic_.sent(to_root);
    traffic_.received(from_root);
  }
}

void SharedCommunicator::reduce_slots(DType dtype, ReduceOp op, void* out, size_t offset,
                                      size_t count) {
  for (int rank = 0; rank < size(); ++rank) ins_[rank] = slot(rank) + offset;
  reduce_elements(dtype, op, &out, 1, reinterpret_cast<const void* const*>(ins_.data()), size(),
                  count);
}

void SharedCommunicator::do_all_reduce(View in, View out, ReduceOp op) {
  board_->check();
  const Call call = {"all_reduce", in.dtype, op, 0, in.count};
  if (in.bytes() <= kSlotBytes) {
    ++small_calls_;
    copy(slot(rank()), in.data, in.bytes());
    step(call);
    reduce_slots(in.dtype, op, out.data, 0, in.count);
    count_same(others() * in.bytes());
    return;
  }
  if (show(call, place_of(in), place_of(out))) {
    const size_t own = reduce_part(in.dtype, op, outs_.data(), size(), ins_.data(), in.count);
    step(call);
    count_all_reduce(in.bytes(), own);
    return;
  }
  const size_t piece = kStageBytes / size_of(in.dtype);
  for (size_t done = 0; done < in.count; done += piece) {
    const View part = {at(in, done), std::min(piece, in.count - done), in.dtype};
    copy(stage(rank()), part.data, part.bytes());
    step(call);
    const size_t own =
        reduce_part(in.dtype, op, stages_.data(), size(), stages_.data(), part.count);
    step(call);
    count_all_reduce(part.bytes(), own);
    copy(at(out, done), stage(rank()), part.bytes());
  }
}

void SharedCommunicator::do_reduce(View in, View out, ReduceOp op, int root) {
  board_->check();
  const Call call = {"reduce", in.dtype, op, root, in.count};
  const bool is_root = rank() == root;
  if (in.bytes() <= kSlotBytes) {
    ++small_calls_;
    copy(slot(rank()), in.data, in.bytes());
    step(call);
    if (is_root) reduce_slots(in.dtype, op, out.data, 0, in.count);
    count_to_or_from(is_root, in.bytes(), 0);
    return;
  }
  if (show(call, place_of(in), is_root ? place_of(out) : kNotNeeded)) {
    const size_t own = reduce_part(in.dtype, op, &outs_[root], 1, ins_.data(), in.count);
    step(call);
    count_reduce(in.bytes(), own, is_root);
    return;
  }
  const size_t piece = kStageBytes / size_of(in.dtype);
  for (size_t done = 0; done < in.count; done += piece) {
    const View part = {at(in, done), std::min(piece, in.count - done), in.dtype};
    copy(stage(rank()), part.data, part.bytes());
    step(call);
    const size_t own = reduce_part(in.dtype, op, &stages_[root], 1, stages_.data(), part.count);
    step(call);
    count_reduce(part.bytes(), own, is_root);
    if (is_root) copy(at(out, done), stage(rank()), part.bytes());
  }
}

void SharedCommunicator::do_broadcast(View data, int root) {
  board_->check();
  const Call call = {"broadcast", data.dtype, ReduceOp::kSum, root, data.count};
  const bool is_root = rank() == root;
  count_to_or_from(is_root, 0, data.bytes());
  if (data.bytes() <= kSlotBytes) {
    ++small_calls_;
    if (is_root) copy(slot(rank()), data.data, data.bytes());
    step(call);
    if (!is_root) copy(data.data, slot(root), data.bytes());
    return;
  }
  if (show(call, is_root ? place_of(data) : kNotNeeded, kNotNeeded)) {
    if (!is_root) copy(data.data, ins_[root], data.bytes());
    step(call);
    return;
  }
  const size_t piece = kStageBytes / size_of(data.dtype);
  for (size_t done = 0; done < data.count; done += piece) {
    const View part = {at(data, done), std::min(piece, data.count - done), data.dtype};
    if (is_root) copy(stage(root), part.data, part.bytes());
    step(call);
    if (!is_root) copy(part.data, stage(root), part.bytes());
    step(call);
  }
}

void SharedCommunicator::do_all_gather(View in, View out) {
  board_->check();
  const Call call = {"all_gather", in.dtype, ReduceOp::kSum, 0, in.count};
  count_same(others() * in.bytes());
  if (in.bytes() <= kSlotBytes) {
    ++small_calls_;
    copy(slot(rank()), in.data, in.bytes());
    step(call);
    for (int r = 0; r < size(); ++r) copy(at(out, r * in.count), slot(r), in.bytes());
    return;
  }
  // Others read `in` while this rank writes `out`, so they must not overlap unless `in` lies at its
  // own position in `out`.
  const bool apart = in.data == at(out, rank() * in.count) || !overlap(in, out);
  if (show(call, apart ? place_of(in) : Place{}, kNotNeeded)) {
    for (int r = 0; r < size(); ++r) copy(at(out, r * in.count), ins_[r], in.bytes());
    step(call);
    return;
  }
  const size_t piece = kStageBytes / size_of(in.dtype);
  for (size_t done = 0; done < in.count; done += piece) {
    const View part = {at(in, done), std::min(piece, in.count - done), in.dtype};
    copy(stage(rank()), part.data, part.bytes());
    step(call);
    for (int r = 0; r < size(); ++r) copy(at(out, r * in.count + done), stage(r), part.bytes());
    step(call);
  }
}

void SharedCommunicator::do_reduce_scatter(View in, View out, ReduceOp op) {
  board_->check();
  const Call call = {"reduce_scatter", in.dtype, op, 0, out.count};
  const size_t element = size_of(in.dtype);
  count_same(others() * out.bytes());
  if (in.bytes() <= kSlotBytes) {
    ++small_calls_;
    copy(slot(rank()), in.data, in.bytes());
    step(call);
    reduce_slots(in.dtype, op, out.data, rank() * out.bytes(), out.count);
    return;
  }
  const bool apart = out.data == at(in, rank() * out.count) || !overlap(in, out);
  if (show(call, apart ? place_of(in) : Place{}, kNotNeeded)) {
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
      copy(stage(rank()) + r * piece * element, at(in, r * out.count + done), count * element);
    }
    step(call);
    for (int r = 0; r < size(); ++r) ins_[r] = stage(r) + rank() * piece * element;
    void* to = at(out, done);
    reduce_elements(in.dtype, op, &to, 1, reinterpret_cast<const void* const*>(ins_.data()), size(),
                    count);
    step(call);
  }
}

void SharedCommunicator::do_send(View data, int peer) {
  board_->check();
  traffic_.sent(data.bytes());
  Box* to = box(rank(), peer);
  size_t done = 0;
  do {
    const size_t bytes = std::min(kBoxBytes, data.bytes() - done);
    const uint64_t sent = to->sent.load(std::memory_order_relaxed);
    board_->wait([&] { return sent - to->taken.load() < 2; }, peer);
    std::memcpy(to->pieces[sent % 2], static_cast<char*>(data.data) + done, bytes);
    to->message_bytes[sent % 2] = data.bytes();
    to->sent.store(sent + 1);
    board_->ring(peer);
    done += bytes;
  } while (done < data.bytes());
}

void SharedCommunicator::do_recv(View data, int peer) {
  board_->check();
  traffic_.received(data.bytes());
  Box* from = box(peer, rank());
  size_t done = 0;
  do {
    const size_t bytes = std::min(kBoxBytes, data.bytes() - done);
    const uint64_t taken = from->taken.load(std::memory_order_relaxed);
    board_->wait([&] { return from->sent.load() > taken; }, peer);
    const uint64_t message = from->message_bytes[taken % 2];
    if (message != data.bytes()) {
      throw board_->raise(Error(ErrorCode::kInternal,
                                group_.name_of(peer) + " sends " + std::to_string(message) +
                                    " bytes, " + group_.name_of(rank()) + " expects " +
                                    std::to_string(data.bytes()),
                                "communicator", "all ranks must run the same plan"));
    }
    std::memcpy(static_cast<char*>(data.data) + done, from->pieces[taken % 2], bytes);
    from->taken.store(taken + 1);
    board_->ring(peer);
    done += bytes;
  } while (done < data.bytes());
}

void SharedCommunicator::do_barrier() {
  board_->check();
  step({.name = "barrier"});
}

namespace {
const CommRegistrar shm("shm", [](const CommOptions& options) {
  return SharedCommunicator::make(options, false);
});
const CommRegistrar inprocess("inprocess", [](const CommOptions& options) {
  return SharedCommunicator::make(options, true);
});
}  // namespace

}  // namespace fleet
