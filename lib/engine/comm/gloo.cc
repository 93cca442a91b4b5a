#include "comm/gloo.h"

#include <algorithm>
#include <cstring>

#include "comm/reduce.h"
#include "tensor/host.h"

namespace fleet {
namespace {

constexpr size_t kSmallBytes = 32 << 10;  // up to here: recursive doubling or a tree
constexpr size_t kPieceBytes =
    1 << 20;  // piece of a pipeline; smaller pieces cost too much per message

// The lowest bits of a slot.
enum Slot : uint64_t { kCollective, kMessage };

void reduce_pair(DType dtype, ReduceOp op, void* out, const void* first, const void* second,
                 size_t count) {
  const void* in[] = {first, second};
  reduce_elements(dtype, op, &out, 1, in, 2, count);
}

uint64_t mix(uint64_t hash, uint64_t value) {  // FNV-1a over bytes
  for (int i = 0; i < 8; ++i) hash = (hash ^ (value >> (8 * i) & 0xff)) * 0x100000001b3;
  return hash;
}

void copy(void* to, const void* from, size_t bytes) {
  if (to != from) std::memmove(to, from, bytes);
}

}  // namespace

std::unique_ptr<GlooCommunicator> GlooCommunicator::make(const CommOptions& options) {
  auto link = std::make_shared<GlooLink>(options);
  std::vector<int> members;
  for (int rank = 0; rank < options.size; ++rank) members.push_back(rank);
  const Group group = link->group();
  std::unique_ptr<GlooCommunicator> comm(
      new GlooCommunicator(std::move(link), group, std::move(members), 0));
  comm->do_barrier();  // no rank may leave while another is still connecting
  return comm;
}

GlooCommunicator::GlooCommunicator(std::shared_ptr<GlooLink> link, Group group,
                                   std::vector<int> members, uint64_t id)
    : HostCommunicator(std::move(group)),
      link_(std::move(link)),
      members_(std::move(members)),
      id_(id & ~uint64_t{0xff}),
      operation_{&members_, id_, 0, &traffic_} {}

Buffer GlooCommunicator::allocate(size_t bytes) {
  link_->check();
  return HostDevice().allocate(bytes);
}

std::unique_ptr<Communicator> GlooCommunicator::split(std::span<const int> ranks) {
  return subgroup(ranks);
}

std::unique_ptr<GlooCommunicator> GlooCommunicator::subgroup(std::span<const int> ranks) {
  link_->check();
  Group sub = group_.subgroup(ranks);
  uint64_t id = mix(0xcbf29ce484222325, id_);
  std::vector<int> members;
  for (int rank : ranks) {
    members.push_back(members_[rank]);
    id = mix(id, static_cast<uint64_t>(rank));
  }
  id = mix(id, static_cast<uint64_t>(splits_[std::vector<int>(ranks.begin(), ranks.end())]++));
  return std::unique_ptr<GlooCommunicator>(
      new GlooCommunicator(link_, std::move(sub), std::move(members), id));
}

void GlooCommunicator::begin() {
  link_->check();
  operation_.count = link_->peer_monitor().begin_operation(id_);
}

char* GlooCommunicator::scratch(size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

View GlooCommunicator::copy_of(View view) {
  if (copy_.size() < view.bytes()) copy_.resize(view.bytes());
  copy(copy_.data(), view.data, view.bytes());
  return {copy_.data(), view.count, view.dtype};
}

void GlooCommunicator::do_all_reduce(View in, View out, ReduceOp op) {
  begin();
  copy(out.data, in.data, in.bytes());
  if (size() == 1) return;
  if (out.bytes() <= kSmallBytes) {
    all_reduce_small(out, op);
  } else {
    ring(out, (out.count + size() - 1) / size(), op, true, true);
  }
}

// Recursive doubling. If the size is not a power of two, the first ranks fold in pairs before and
// unfold after it. The half with the lower ranks is always the left operand.
void GlooCommunicator::all_reduce_small(View data, ReduceOp op) {
  int power = 1;
  while (power * 2 <= size()) power *= 2;
  const int folded = 2 * (size() - power);  // ranks below it form pairs
  char* received = scratch(data.bytes());
  GlooLink::MessageBuffer mine(*link_, *reported_operation_, data.data, data.bytes());
  GlooLink::MessageBuffer theirs(*link_, *reported_operation_, received, data.bytes());
  const uint64_t slot = id_ | kCollective;
  if (rank() < folded && rank() % 2 == 1) {
    const int left = members_[rank() - 1];
    mine.send(left, slot, 0, data.bytes());
    mine.wait_send(left);
    mine.recv(left, slot, 0, data.bytes());
    mine.wait_recv(left);
    return;
  }
  if (rank() < folded) {
    theirs.recv(members_[rank() + 1], slot, 0, data.bytes());
    theirs.wait_recv(members_[rank() + 1]);
    reduce_pair(data.dtype, op, data.data, data.data, received, data.count);
  }
  const int position = rank() < folded ? rank() / 2 : rank() - folded / 2;
  for (int distance = 1; distance < power; distance *= 2) {
    const int partner = position ^ distance;
    const int peer = members_[partner < folded / 2 ? partner * 2 : partner + folded / 2];
    theirs.recv(peer, slot, 0, data.bytes());
    mine.send(peer, slot, 0, data.bytes());
    theirs.wait_recv(peer);
    mine.wait_send(peer);
    const void *low = partner < position ? received : data.data,
               *high = partner < position ? data.data : received;
    reduce_pair(data.dtype, op, data.data, low, high, data.count);
  }
  if (rank() < folded) {
    mine.send(members_[rank() + 1], slot, 0, data.bytes());
    mine.wait_send(members_[rank() + 1]);
  }
}

// Messages are numbered across all rounds. Reduce round k receives part rank - k - 2 from the left
// and adds it; the sum is sent on in the next round. At the end part `rank` is complete, and
// gathering passes the complete parts on in the same way.
void GlooCommunicator::ring(View data, size_t part, ReduceOp op, bool reduce, bool gather) {
  const size_t element = size_of(data.dtype);
  const int n = size();
  const size_t piece = std::min(part, kPieceBytes / element);
  const size_t pieces = (part + piece - 1) / piece;  // pieces per part
  const size_t reducing = reduce ? (n - 1) * pieces : 0;
  const size_t total = reducing + (gather ? (n - 1) * pieces : 0);
  const int left = members_[(rank() + n - 1) % n], right = members_[(rank() + 1) % n];
  const uint64_t slot = id_ | kCollective;
  char* received = reduce ? scratch(2 * piece * element) : nullptr;
  GlooLink::MessageBuffer all(*link_, *reported_operation_, data.data, data.bytes());
  GlooLink::MessageBuffer incoming(*link_, *reported_operation_, received,
                                   reduce ? 2 * piece * element : 0);

  // The elements that message m holds. Sent messages are one round ahead of received ones.
  const auto span_of = [&](size_t m, bool sent) {
    const int round = static_cast<int>(m / pieces) - (sent ? 1 : 0) + (reduce ? 0 : n - 1);
    const size_t which = ((rank() - 2 - round) % n + 2 * n) % n;
    const size_t begin = std::min(which * part + m % pieces * piece, data.count);
    const size_t limit = std::min((which + 1) * part, data.count);
    return std::pair{begin, std::min(begin + piece, std::max(limit, begin)) - begin};
  };
  const auto post_recv = [&](size_t m) {
    if (m >= total) return;
    const auto [begin, count] = span_of(m, false);
    if (count == 0) return;
    if (m < reducing) {
      incoming.recv(left, slot, m % 2 * piece * element, count * element);
    } else {
      all.recv(left, slot, begin * element, count * element);
    }
  };
  size_t sends = 0;
  const auto post_send = [&](size_t m) {
    const auto [begin, count] = span_of(m, true);
    if (count == 0) return;
    all.send(right, slot, begin * element, count * element);
    ++sends;
  };
  post_recv(0);
  post_recv(1);
  for (size_t m = 0; m < pieces; ++m) post_send(m);
  for (size_t m = 0; m < total; ++m) {
    const auto [begin, count] = span_of(m, false);
    if (count > 0) {
      if (m < reducing) {
        incoming.wait_recv(left);
        reduce_pair(data.dtype, op, data.at(begin), received + m % 2 * piece * element,
                    data.at(begin), count);
      } else {
        all.wait_recv(left);
      }
    }
    post_recv(m + 2);
    if (m + pieces < total) post_send(m + pieces);
  }
  while (sends-- > 0) all.wait_send(right);
}

void GlooCommunicator::do_reduce(View in, View out, ReduceOp op, int root) {
  begin();
  if (size() == 1) return copy(out.data, in.data, in.bytes());
  if (in.bytes() > kSmallBytes) return reduce_chain(in, out, op, root);
  const View work = rank() == root ? out : copy_of(in);  // `in` must not change
  if (rank() == root) copy(out.data, in.data, in.bytes());
  all_reduce_small(work, op);
}

// From the rank behind the root around to the root, each adds its own: only the root sends nothing.
void GlooCommunicator::reduce_chain(View in, View out, ReduceOp op, int root) {
  const int n = size(), position = (rank() - root + n) % n;
  const int before = members_[(rank() + 1) % n], after = members_[(rank() + n - 1) % n];
  const bool first = position == n - 1, last = position == 0;
  const size_t element = size_of(in.dtype), piece = kPieceBytes / element;
  const size_t pieces = (in.count + piece - 1) / piece;
  const uint64_t slot = id_ | kCollective;
  const auto count_of = [&](size_t m) { return std::min(piece, in.count - m * piece); };
  char* const received = scratch(4 * kPieceBytes);  // two pieces, and
  char* const sums = received + 2 * kPieceBytes;    // two to send
  GlooLink::MessageBuffer own(*link_, *reported_operation_, in.data, in.bytes());
  GlooLink::MessageBuffer incoming(*link_, *reported_operation_, received, 2 * kPieceBytes);
  GlooLink::MessageBuffer outgoing(*link_, *reported_operation_, sums, 2 * kPieceBytes);
  const auto post_recv = [&](size_t m) {
    if (m < pieces) incoming.recv(before, slot, m % 2 * kPieceBytes, count_of(m) * element);
  };
  if (first) {
    for (size_t m = 0; m < pieces; ++m) {
      own.send(after, slot, m * kPieceBytes, count_of(m) * element);
    }
    for (size_t m = 0; m < pieces; ++m) own.wait_send(after);
    return;
  }
  post_recv(0);
  post_recv(1);
  for (size_t m = 0; m < pieces; ++m) {
    incoming.wait_recv(before);
    if (!last && m >= 2) outgoing.wait_send(after);
    const size_t half = m % 2 * kPieceBytes;
    void* const sum = last ? static_cast<void*>(out.at(m * piece)) : sums + half;
    reduce_pair(in.dtype, op, sum, received + half, in.at(m * piece), count_of(m));
    post_recv(m + 2);
    if (!last) outgoing.send(after, slot, half, count_of(m) * element);
  }
  for (size_t m = 0; m < std::min<size_t>(pieces, 2) && !last; ++m) outgoing.wait_send(after);
}

void GlooCommunicator::do_broadcast(View data, int root) {
  begin();
  if (size() == 1 || data.count == 0) return;
  if (data.bytes() <= kSmallBytes) {
    broadcast_tree(data, root);
  } else {
    broadcast_chain(data, root);
  }
}

void GlooCommunicator::broadcast_tree(View data, int root) {
  const int n = size(), position = (rank() - root + n) % n;
  const auto peer = [&](int other) { return members_[(other + root) % n]; };
  GlooLink::MessageBuffer message(*link_, *reported_operation_, data.data, data.bytes());
  int bit = 1;
  while (bit < n && !(position & bit)) bit *= 2;
  if (position != 0) {
    message.recv(peer(position - bit), id_ | kCollective, 0, data.bytes());
    message.wait_recv(peer(position - bit));
  }
  std::vector<int> children;
  for (bit /= 2; bit > 0; bit /= 2) {
    if (position + bit < n) children.push_back(peer(position + bit));
  }
  for (int child : children) message.send(child, id_ | kCollective, 0, data.bytes());
  for (int child : children) message.wait_send(child);
}

void GlooCommunicator::broadcast_chain(View data, int root) {
  const int n = size(), position = (rank() - root + n) % n;
  const int before = members_[(rank() + n - 1) % n], after = members_[(rank() + 1) % n];
  const bool first = position == 0, last = position == n - 1;
  const size_t pieces = (data.bytes() + kPieceBytes - 1) / kPieceBytes;
  const auto bytes_of = [&](size_t m) {
    return std::min(kPieceBytes, data.bytes() - m * kPieceBytes);
  };
  GlooLink::MessageBuffer message(*link_, *reported_operation_, data.data, data.bytes());
  for (size_t m = 0; m < pieces && !first; ++m) {
    message.recv(before, id_ | kCollective, m * kPieceBytes, bytes_of(m));
  }
  for (size_t m = 0; m < pieces; ++m) {
    if (!first) message.wait_recv(before);
    if (!last) message.send(after, id_ | kCollective, m * kPieceBytes, bytes_of(m));
  }
  for (size_t m = 0; m < pieces && !last; ++m) message.wait_send(after);
}

void GlooCommunicator::do_all_gather(View in, View out) {
  begin();
  copy(out.at(rank() * in.count), in.data, in.bytes());
  if (size() == 1 || in.count == 0) return;
  ring(out, in.count, ReduceOp::kSum, false, true);
}

void GlooCommunicator::do_reduce_scatter(View in, View out, ReduceOp op) {
  begin();
  if (size() == 1 || in.count == 0) return copy(out.data, in.data, in.bytes());
  const View work = copy_of(in);
  ring(work, out.count, op, true, false);
  copy(out.data, work.at(rank() * out.count), out.bytes());
}

void GlooCommunicator::do_send(View data, int peer) {
  link_->check();
  const std::vector<int> both = {members_[peer]};
  const GlooLink::Operation operation = {&both, id_, 0, &traffic_};
  GlooLink::MessageBuffer message(*link_, operation, data.data, data.bytes());
  message.send(members_[peer], id_ | kMessage, 0, data.bytes());
  message.wait_send(members_[peer]);
}

void GlooCommunicator::do_recv(View data, int peer) {
  link_->check();
  const std::vector<int> both = {members_[peer]};
  const GlooLink::Operation operation = {&both, id_, 0, &traffic_};
  GlooLink::MessageBuffer message(*link_, operation, data.data, data.bytes());
  message.recv(members_[peer], id_ | kMessage, 0, data.bytes());
  message.wait_recv(members_[peer]);
}

void GlooCommunicator::do_barrier() {
  begin();
  uint8_t token = 0;
  if (size() > 1) all_reduce_small({&token, 1, DType::kUInt8}, ReduceOp::kMax);
}

FLEET_COMM_BACKEND(gloo) {
  def.make = [](const CommOptions& options) -> std::unique_ptr<Communicator> {
    return GlooCommunicator::make(options);
  };
}

}  // namespace fleet
