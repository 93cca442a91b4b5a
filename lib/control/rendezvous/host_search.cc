#include "rendezvous/host_search.h"

#include <algorithm>
#include <utility>

namespace fleet {
namespace {

// The next host is one of the first remaining nodes; asking all nodes of a large job would flood
// them.
constexpr size_t kAsked = 16;
constexpr std::chrono::milliseconds kAskEvery{1'000};
constexpr std::chrono::milliseconds kAskNextHost{100};  // the one whose turn it is
constexpr std::chrono::milliseconds kJoinTime{5'000};   // until the joined host admits this node

}  // namespace

HostSearch::HostSearch(HostSearchSettings settings, Time now)
    : settings_(std::move(settings)),
      clock_(now, RunningDeadline::kLook * 3 / 2),
      began_(now),
      deadline_(now + settings_.give_up),
      join_due_(now) {
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

HostSearch::Step HostSearch::on_time(Time steady) {
  const Time now = clock_.at(steady);
  if (state_ == State::kJoining && now >= join_due_) {
    on_host_gone(steady);
    return {Step::Action::kLeave};
  }
  if (state_ != State::kAsking) return {};
  if (now >= deadline_) return {Step::Action::kGiveUp};
  if (now < own_turn()) return {};
  state_ = State::kHosting;
  return {Step::Action::kHost, settings_.self};
}

HostSearch::Step HostSearch::on_answer(int node, HostAnswer answer, Time steady) {
  const Time now = clock_.at(steady);
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

// A host that had admitted this node has decided: the time to find one begins again.
void HostSearch::on_host_gone(Time steady) {
  if (state_ != State::kJoining) deadline_ = clock_.at(steady) + settings_.give_up;
  state_ = State::kAsking;
}

std::vector<int> HostSearch::take_questions(Time steady) {
  const Time now = clock_.at(steady);
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

HostSearch::Time HostSearch::due(Time steady) const {
  Time due = Time::max();
  if (state_ == State::kJoining) due = std::min(due, join_due_);
  if (state_ == State::kAsking) due = std::min({due, deadline_, own_turn()});
  for (const Question& question : questions_) {
    if (asks()) due = std::min(due, question.next);
  }
  return std::min(clock_.steady(due), steady + RunningDeadline::kLook);
}

}  // namespace fleet
