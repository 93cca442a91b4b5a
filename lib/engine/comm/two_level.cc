#include "comm/two_level.h"

#include <vector>

#include "comm/hierarchical.h"
#include "comm/recorded_communicator.h"

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
  name_group(flat_, name);
  name_group(*inner_, name + ", inner");
  if (outer_) name_group(*outer_, name + ", outer");
}

void TwoLevelCommunicator::all_reduce(View in, View out, ReduceOp op, Stream& stream) {
  check_pair("all_reduce", in, out, 1, 1);
  inner_->reduce(in, out, op, 0, stream);
  if (outer_) outer_->all_reduce(out, out, op, stream);
  inner_->broadcast(out, 0, stream);
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

bool reduces_within_hosts_first(const Communicator& communicator) {
  const auto* recorded = dynamic_cast<const RecordedCommunicator*>(&communicator);
  const Communicator& inner = recorded ? recorded->inner() : communicator;
  return dynamic_cast<const HierarchicalCommunicator*>(&inner) != nullptr;
}

}  // namespace fleet
