// A server's receipt of pushes, and its updates of the blocks.
#include <algorithm>
#include <bit>

#include "ps/dense_server.h"

namespace fleet::ps {

void DenseServer::initial(int trainer, const Message& message) {
  FLEET_CHECK(trainer == 0, "values of " + name_of(trainer));
  const auto head = head_of<InitialHead>(message);
  if (message.header.sequence > ordinal_) {
    store_.load(head.sections, behind_head<InitialHead>(message));
    if (head.sections & kValueSection) {
      version_ = message.header.version;
      for (Peer& peer : trainers_) peer.steps = version_;
    }
    ordinal_ = message.header.sequence;
  }
  accept(trainer, message);
  answer_waits();
}

void DenseServer::check_push(int trainer, const Message& message) const {
  FLEET_CHECK(version_ >= 0, "gradients of " + name_of(trainer) + " before initial values");
  FLEET_CHECK(message.header.sequence == trainers_[trainer].sequence + 1,
              "a push of " + name_of(trainer) + " is missing");
  const int64_t step = message.header.version;
  FLEET_CHECK(step >= version_, "gradients of " + name_of(trainer) + " of an earlier step");
  for (int other = 0; other < std::ssize(trainers_); ++other) {
    const Peer& peer = trainers_[other];
    if (peer.left) {
      throw Error(ErrorCode::kPeerLost,
                  "has ended before step " + std::to_string(step) + " of " + name_of(trainer),
                  name_of(other), "give all trainers the same number of steps");
    }
    if (peer.pushed && step_ != step) {
      throw Error(ErrorCode::kUsage,
                  "is at step " + std::to_string(step) + ", while " + name_of(other) +
                      " is at step " + std::to_string(step_),
                  name_of(trainer), "resume all trainers from the same checkpoint");
    }
  }
  const auto head = head_of<PushHead>(message);
  const bool first = count(&Peer::pushed) == 0;
  const bool equal =
      std::bit_cast<uint32_t>(head.learning_rate) == std::bit_cast<uint32_t>(heads_.learning_rate);
  if (!first && !equal) {
    throw Error(ErrorCode::kUsage, "has another learning rate in step " + std::to_string(step),
                name_of(trainer), "give all trainers the same schedule");
  }
}

void DenseServer::push(int trainer, Message message, double now) {
  Peer& peer = trainers_[trainer];
  if (message.header.sequence <= peer.sequence) return accept(trainer, message);  // a retry
  if (apart()) return apply(trainer, message);
  check_push(trainer, message);
  const auto head = head_of<PushHead>(message);
  if (count(&Peer::pushed) == 0) {
    step_ = message.header.version;
    pushed_since_ = now;
    heads_ = {.learning_rate = head.learning_rate};
  }
  heads_.loss_is_bad |= head.loss_is_bad;
  const uint32_t bad = head.bad_gradient;
  if (bad > 0 && (heads_.bad_gradient == 0 || bad < heads_.bad_gradient)) heads_.bad_gradient = bad;
  peer.pushed = true;
  peer.sequence = message.header.sequence;
  accept(trainer, message);
  peer.push = std::move(message);
  add_pushes(now);
}

// Without the other trainers.
void DenseServer::apply(int trainer, const Message& message) {
  Peer& peer = trainers_[trainer];
  FLEET_CHECK(version_ >= 0, "a push of " + name_of(trainer) + " before initial values");
  FLEET_CHECK(message.header.sequence == peer.sequence + 1,
              "a push of " + name_of(trainer) + " is missing");
  FLEET_CHECK(message.header.version >= peer.steps,
              "a push of " + name_of(trainer) + " of an earlier step");
  if (peer.meeting) end_meeting(*peer.meeting);
  const auto head = head_of<PushHead>(message);
  const std::span<const std::byte> data = behind_head<PushHead>(message);
  if (options_.own.mode == static_cast<uint32_t>(ServerMode::kGeo)) {
    store_.add_to_values(data);
  } else {
    store_.add(data, /*first=*/true);
    if (store_.has_low_types()) store_.add_low_types({data});
    outcome_ = {.left_out = head.loss_is_bad || head.bad_gradient ? 1u : 0u,
                .bad_gradient = head.bad_gradient};
    store_.update(head.learning_rate, outcome_.left_out != 0);
  }
  if (options_.tables) {
    options_.tables->apply_push(trainer, outcome_.left_out != 0, head.learning_rate);
  }
  peer.sequence = message.header.sequence;
  peer.steps = message.header.version + 1;
  follow_slowest();
  accept(trainer, message);
  answer_waits();
}

// A trainer that a signal has stopped trains no further, so the others would wait for nothing.
void DenseServer::meet(int trainer, const Message& message) {
  FLEET_CHECK(apart() && version_ >= 0, "a meeting of " + name_of(trainer) + " within the start");
  trainers_[trainer].meeting = message.header.sequence;
  follow_slowest();
  accept(trainer, message);
  answer_waits();
}

// One of the met trains on, so all have come. Others may be in the next one already, if this one is
// a process that repeats what its predecessor had not finished.
void DenseServer::end_meeting(uint64_t ordinal) {
  for (Peer& peer : trainers_) {
    if (peer.meeting && *peer.meeting <= ordinal) peer.meeting.reset();
  }
}

int64_t DenseServer::ahead() const {
  int64_t most = 0;
  for (const Peer& peer : trainers_) most = std::max(most, peer.steps);
  return apart() && version_ >= 0 ? std::max<int64_t>(0, most - version_) : 0;
}

void DenseServer::follow_slowest() {
  const int64_t before = std::exchange(version_, std::max(version_, steps_of_slowest()));
  if (options_.tables) options_.tables->advance(before, version_);
}

// Of those that train.
int64_t DenseServer::steps_of_slowest() const {
  int64_t least = -1, most = 0;
  for (const Peer& peer : trainers_) {
    most = std::max(most, peer.steps);
    if (peer.left || peer.meeting) continue;
    if (least < 0 || peer.steps < least) least = peer.steps;
  }
  return least < 0 ? most : least;
}

void DenseServer::add_pushes(double now) {
  for (; added_ < std::ssize(trainers_) && trainers_[added_].push; ++added_) {
    std::optional<Message>& message = trainers_[added_].push;
    store_.add(behind_head<PushHead>(*message), added_ == 0);
    if (!store_.has_low_types()) message.reset();
  }
  if (added_ < std::ssize(trainers_)) return;
  waited_for_pushes_ += now - pushed_since_;
  if (store_.has_low_types()) {
    std::vector<std::span<const std::byte>> all;
    for (const Peer& peer : trainers_) all.push_back(behind_head<PushHead>(*peer.push));
    store_.add_low_types(all);
  }
  if (!store_.shares_norms()) return update();
  needs_norms_ = true;
  pushed_since_ = now;
  send(0, {.header = {.type = MessageType::kNorms, .version = step_}, .parts = {store_.norms()}});
}

void DenseServer::norms(int trainer, const Message& message) {
  FLEET_CHECK(trainer == 0 && needs_norms_ && message.header.version == step_,
              "norms of " + name_of(trainer) + " that nothing waits for");
  store_.set_norms(message.payload());
  needs_norms_ = false;
  update();
}

void DenseServer::update() {
  outcome_ = {.left_out = heads_.loss_is_bad || heads_.bad_gradient ? 1u : 0u,
              .bad_gradient = heads_.bad_gradient};
  store_.update(heads_.learning_rate, outcome_.left_out != 0);
  const int64_t before = std::exchange(version_, step_ + 1);
  if (options_.tables) {
    options_.tables->update({.from = before,
                             .to = version_,
                             .left_out = outcome_.left_out != 0,
                             .learning_rate = heads_.learning_rate});
  }
  added_ = 0;
  for (Peer& peer : trainers_) {
    peer.pushed = false;
    peer.push.reset();
  }
  answer_waits();
}

}  // namespace fleet::ps
