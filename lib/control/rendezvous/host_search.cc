#include "rendezvous/host_search.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace fleet {
namespace {

// The next host is one of the first remaining nodes; asking all nodes of a large job would flood
// them.
constexpr size_t kAsked = 16;
constexpr std::chrono::milliseconds kAskEvery{1'000};
constexpr std::chrono::milliseconds kAskNextHost{100};  // the one whose turn it is
constexpr std::chrono::milliseconds kJoinTime{5'000};   // until the joined host admits this node
// on_time() is called twice as often: only a suspension makes it so late.
constexpr std::chrono::milliseconds kSuspended{1'000};

}  // namespace

HostSearch::HostSearch(HostSearchSettings settings, Time now)
    : settings_(std::move(settings)),
      began_(now),
      deadline_(now + settings_.give_up),
      join_due_(now),
      suspension_(now) {
  const int nodes = static_cast<int>(settings_.can_host.size());
  for (int i = 1; i <= nodes; ++i) {
    const int node = i % nodes;
    if (settings_.can_host[static_cast<size_t>(node)]) order_.push_back(node);
    const bool old_host = node == 0;
    const bool asked = old_host || (order_.size() <= kAsked && place_of(node) < order_.size());
    if (asked && node != settings_.self) questions_.push_back({node, now});
  }
}

size_t HostSearch::place_of(int node) const {
  return static_cast<size_t>(std::ranges::find(order_, node) - order_.begin());
}

HostSearch::Time HostSearch::own_turn() const {
  if (!settings_.may_host || place_of(settings_.self) == order_.size()) return Time::max();
  return began_ + static_cast<int>(place_of(settings_.self)) * settings_.turn;
}

HostSearch::Step HostSearch::on_time(Time now) {
  const auto suspended = suspension_.poll(now, kSuspended);
  for (Time* time : {&began_, &deadline_, &join_due_}) *time += suspended;
  if (state_ == State::kJoining && now >= join_due_) {
    on_host_gone(now);
    return {Step::Action::kLeave};
  }
  if (state_ != State::kAsking) return {};
  if (now >= deadline_) return {Step::Action::kGiveUp};
  if (now < own_turn()) return {};
  state_ = State::kHosting;
  return {Step::Action::kHost, settings_.self};
}

HostSearch::Step HostSearch::on_answer(int node, HostAnswer answer, Time now) {
  const auto question = std::ranges::find(questions_, node, &Question::node);
  if (question == questions_.end()) return {};
  question->next = next_question(node, now);
  const bool first = !hosts() || place_of(node) < place_of(settings_.self);
  const bool found = answer == HostAnswer::kContinues || (answer == HostAnswer::kWaits && first);
  if (!found || !asks()) return {};
  if (hosts()) deadline_ = now + settings_.give_up;
  state_ = State::kJoining;
  join_due_ = now + kJoinTime;
  return {Step::Action::kJoin, node};
}

void HostSearch::on_admitted() {
  if (state_ == State::kJoining) state_ = State::kFollowing;
}

// A host that had admitted this node decided meanwhile: the time to find one begins again.
void HostSearch::on_host_gone(Time now) {
  if (state_ != State::kJoining) deadline_ = now + settings_.give_up;
  state_ = State::kAsking;
}

std::vector<int> HostSearch::take_questions(Time now) {
  std::vector<int> nodes;
  for (Question& question : questions_) {
    if (!asks() || now < question.next) continue;
    question.next = Time::max();
    nodes.push_back(question.node);
  }
  return nodes;
}

HostSearch::Time HostSearch::next_question(int node, Time now) const {
  const bool its_turn = settings_.turn.count() > 0 &&
                        place_of(node) == static_cast<size_t>((now - began_) / settings_.turn);
  return now + (its_turn ? kAskNextHost : kAskEvery);
}

HostSearch::Time HostSearch::due(Time now) const {
  Time due = now + kSuspended / 2;
  if (state_ == State::kJoining) due = std::min(due, join_due_);
  if (state_ == State::kAsking) due = std::min({due, deadline_, own_turn()});
  for (const Question& question : questions_) {
    if (asks()) due = std::min(due, question.next);
  }
  return due;
}

}  // namespace fleet
