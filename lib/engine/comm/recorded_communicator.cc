#include "comm/recorded_communicator.h"

#include <utility>

#include "comm/two_level.h"
#include "tensor/host.h"

namespace fleet {
namespace {

thread_local const CollectivePurpose* this_purpose = nullptr;
thread_local RecordedCalls* this_recording = nullptr;

}  // namespace

// The numbers of a communicator's calls. One thread issues at a time.
struct RecordedCalls::Sequence {
  Sequence(const std::string& name, const std::vector<int>& ranks, bool device)
      : group(CollectiveLog::of_process().add_group(name, ranks, device)),
        sent(ranks.size()),
        received(ranks.size()) {}

  // `call`: without its number.
  CollectiveTicket issue(CollectiveRecord call, int peer) {
    int64_t& last = call.kind == CollectiveKind::kSend   ? sent[static_cast<size_t>(peer)]
                    : call.kind == CollectiveKind::kRecv ? received[static_cast<size_t>(peer)]
                                                         : together;
    call.sequence = ++last;
    return CollectiveLog::of_process().issue(group, call);
  }

  const int group;
  int64_t together = 0;
  std::vector<int64_t> sent, received;  // by rank of the group
};

CollectivePurposeScope::CollectivePurposeScope(const CollectivePurpose& purpose)
    : before_(std::exchange(this_purpose, &purpose)) {}

CollectivePurposeScope::~CollectivePurposeScope() { this_purpose = before_; }

RecordedCalls::Scope::Scope(RecordedCalls* calls) { this_recording = calls; }

RecordedCalls::Scope::~Scope() { this_recording = nullptr; }

void RecordedCalls::launched() {
  for (const Call& call : calls_) call.sequence->issue(call.call, call.peer);
}

RecordedCommunicator::RecordedCommunicator(std::unique_ptr<Communicator> inner,
                                           const std::string& group, std::vector<int> ranks,
                                           bool device)
    : inner_(std::move(inner)),
      ranks_(std::move(ranks)),
      device_(device),
      name_(group),
      sequence_(std::make_shared<RecordedCalls::Sequence>(group, ranks_, device)) {}

RecordedCommunicator::~RecordedCommunicator() {
  CollectiveLog::of_process().close_group(sequence_->group);
}

void RecordedCommunicator::set_group_name(const std::string& name) {
  name_ = name;
  CollectiveLog::of_process().rename_group(sequence_->group, name);
}

std::unique_ptr<Communicator> RecordedCommunicator::split(std::span<const int> ranks) {
  std::unique_ptr<Communicator> inner = inner_->split(ranks);
  std::vector<int> of_job;
  for (const int rank : ranks) of_job.push_back(ranks_[static_cast<size_t>(rank)]);
  return std::make_unique<RecordedCommunicator>(std::move(inner), "part of " + name_,
                                                std::move(of_job), device_);
}

// peer: a rank of the group, -1: none. issue() enqueues the call.
template <typename Issue>
void RecordedCommunicator::record(CollectiveKind kind, size_t bytes, int peer, Stream& stream,
                                  const Issue& issue) {
  const bool message = kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
  CollectiveRecord call;
  call.bytes = static_cast<int64_t>(bytes);
  call.kind = kind;
  // A wrong one is refused by the transport.
  const bool known = peer >= 0 && peer < static_cast<int>(ranks_.size());
  if (!known && (message || peer != -1)) return issue();
  if (known) call.peer = ranks_[static_cast<size_t>(peer)];
  if (this_purpose) call.purpose = *this_purpose;
  if (device_ && this_recording) {
    this_recording->calls_.push_back({sequence_, call, peer});
    return issue();
  }
  const CollectiveTicket ticket = sequence_->issue(call, peer);
  if (device_) return issue();
  HostStream& host = HostStream::of(stream);
  host.enqueue([ticket] { CollectiveLog::of_process().start(ticket); });
  issue();
  host.enqueue([ticket] { CollectiveLog::of_process().finish(ticket); });
}

void RecordedCommunicator::all_reduce(View in, View out, ReduceOp op, Stream& stream) {
  record(CollectiveKind::kAllReduce, in.bytes(), -1, stream,
         [&] { inner_->all_reduce(in, out, op, stream); });
}

void RecordedCommunicator::reduce(View in, View out, ReduceOp op, int root, Stream& stream) {
  record(CollectiveKind::kReduce, in.bytes(), root, stream,
         [&] { inner_->reduce(in, out, op, root, stream); });
}

void RecordedCommunicator::broadcast(View data, int root, Stream& stream) {
  record(CollectiveKind::kBroadcast, data.bytes(), root, stream,
         [&] { inner_->broadcast(data, root, stream); });
}

void RecordedCommunicator::all_gather(View in, View out, Stream& stream) {
  record(CollectiveKind::kAllGather, in.bytes(), -1, stream,
         [&] { inner_->all_gather(in, out, stream); });
}

void RecordedCommunicator::reduce_scatter(View in, View out, ReduceOp op, Stream& stream) {
  record(CollectiveKind::kReduceScatter, in.bytes(), -1, stream,
         [&] { inner_->reduce_scatter(in, out, op, stream); });
}

void RecordedCommunicator::send(View data, int peer, Stream& stream) {
  record(CollectiveKind::kSend, data.bytes(), peer, stream,
         [&] { inner_->send(data, peer, stream); });
}

void RecordedCommunicator::recv(View data, int peer, Stream& stream) {
  record(CollectiveKind::kRecv, data.bytes(), peer, stream,
         [&] { inner_->recv(data, peer, stream); });
}

void RecordedCommunicator::barrier(Stream& stream) {
  record(CollectiveKind::kBarrier, 0, -1, stream, [&] { inner_->barrier(stream); });
}

void name_group(Communicator& communicator, const std::string& name) {
  if (auto* recorded = dynamic_cast<RecordedCommunicator*>(&communicator)) {
    recorded->set_group_name(name);
  } else if (auto* groups = dynamic_cast<TwoLevelCommunicator*>(&communicator)) {
    groups->set_group_name(name);
  }
}

}  // namespace fleet
