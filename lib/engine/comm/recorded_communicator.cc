#include "comm/recorded_communicator.h"

#include <utility>

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

void RecordedCommunicator::issue(const CollectiveCall& call, Stream& stream) {
  const bool message = call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kRecv;
  // A wrong one is refused by the transport.
  const bool known = call.peer >= 0 && call.peer < static_cast<int>(ranks_.size());
  if (!known && (message || call.peer != -1)) return inner_->issue(call, stream);
  CollectiveRecord record;
  record.bytes = static_cast<int64_t>(call.in.bytes());
  record.kind = call.kind;
  if (known) record.peer = ranks_[static_cast<size_t>(call.peer)];
  if (this_purpose) record.purpose = *this_purpose;
  if (device_ && this_recording) {
    this_recording->calls_.push_back({sequence_, record, call.peer});
    return inner_->issue(call, stream);
  }
  const CollectiveTicket ticket = sequence_->issue(record, call.peer);
  if (device_) return inner_->issue(call, stream);
  HostStream& host = HostStream::of(stream);
  host.enqueue([ticket] { CollectiveLog::of_process().start(ticket); });
  inner_->issue(call, stream);
  host.enqueue([ticket] { CollectiveLog::of_process().finish(ticket); });
}

}  // namespace fleet
