#include "comm/two_level.h"

#include <vector>

#include "comm/group.h"

namespace fleet {

std::unique_ptr<TwoLevelCommunicator> TwoLevelCommunicator::make(Communicator& flat,
                                                                 int group_size) {
  if (group_size <= 1 || group_size >= flat.size() || flat.size() % group_size != 0) {
    throw Error(ErrorCode::kUsage,
                std::to_string(flat.size()) + " ranks in groups of " + std::to_string(group_size),
                "communicator", "the group size must be above 1 and divide the number of ranks");
  }
  const int group = flat.rank() / group_size;
  std::vector<int> members, leaders;
  for (int i = 0; i < group_size; ++i) members.push_back(group * group_size + i);
  for (int leader = 0; leader < flat.size(); leader += group_size) leaders.push_back(leader);
  std::unique_ptr<Communicator> inner = flat.split(members), outer;
  if (inner->rank() == 0) outer = flat.split(leaders);
  return std::unique_ptr<TwoLevelCommunicator>(
      new TwoLevelCommunicator(flat, std::move(inner), std::move(outer)));
}

TwoLevelCommunicator::TwoLevelCommunicator(Communicator& flat, std::unique_ptr<Communicator> inner,
                                           std::unique_ptr<Communicator> outer)
    : flat_(flat), inner_(std::move(inner)), outer_(std::move(outer)) {}

std::string TwoLevelCommunicator::name() const {
  return flat_.name() + " in groups of " + std::to_string(inner_->size());
}

void TwoLevelCommunicator::set_group_name(const std::string& name) {
  flat_.set_group_name(name);
  inner_->set_group_name(name + ", inner");
  if (outer_) outer_->set_group_name(name + ", outer");
}

void TwoLevelCommunicator::issue(const CollectiveCall& call, Stream& stream) {
  if (call.kind != CollectiveKind::kAllReduce) return flat_.issue(call, stream);
  check_call(call, {});
  inner_->reduce(call.in, call.out, call.op, 0, stream);
  if (outer_) outer_->all_reduce(call.out, call.out, call.op, stream);
  inner_->broadcast(call.out, 0, stream);
}

void TwoLevelCommunicator::abort(const Error& why) {
  flat_.abort(why);
  inner_->abort(why);
  if (outer_) outer_->abort(why);
}

void TwoLevelCommunicator::throw_if_failed() const {
  flat_.throw_if_failed();
  inner_->throw_if_failed();
  if (outer_) outer_->throw_if_failed();
}

void TwoLevelCommunicator::launched(Stream& stream) {
  inner_->launched(stream);
  if (outer_) outer_->launched(stream);
}

std::optional<Traffic> TwoLevelCommunicator::traffic() const {
  std::optional<Traffic> sum = flat_.traffic();
  if (!sum) return sum;
  *sum += inner_->traffic().value();
  if (outer_) *sum += outer_->traffic().value();
  return sum;
}

}  // namespace fleet
