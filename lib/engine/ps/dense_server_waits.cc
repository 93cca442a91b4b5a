// Whom a server's trainers wait for, until when, and the values that they get.
#include <algorithm>
#include <limits>

#include "base/text.h"
#include "ps/dense_server.h"

namespace fleet::ps {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

Message with_sections(MessageType type, const Bytes& head, std::vector<Bytes> sections) {
  Message message{.header = {.type = type}, .parts = {head}};
  std::ranges::move(sections, std::back_inserter(message.parts));
  return message;
}

}  // namespace

void DenseServer::pull(int trainer, const Message& message, double now) {
  Wait wait{.since = now, .version = message.header.version};
  if (message.header.type == MessageType::kPullStates) wait.states = head_of<StatesHead>(message);
  FLEET_CHECK(!trainers_[trainer].wait, name_of(trainer) + " pulls twice at the same time");
  trainers_[trainer].wait = wait;
  answer_waits();
}

bool DenseServer::can_answer(const Wait& wait) const {
  return version_ >= 0 && version_ >= wait.version &&
         (!wait.states || wait.states->ordinal <= ordinal_);
}

void DenseServer::answer_waits() {
  Copies copies;
  for (int t = 0; t < std::ssize(trainers_); ++t) {
    std::optional<Wait>& wait = trainers_[t].wait;
    if (!wait || !can_answer(*wait)) continue;
    answer(t, *wait, &copies);
    wait.reset();
  }
}

// In sync, the blocks stay as they are until each trainer has pushed again, and before that it has
// received them. A trainer that runs alone waits for its values as well.
bool DenseServer::may_change_while_sent(int to) const {
  if (!apart()) return false;
  for (int t = 0; t < std::ssize(trainers_); ++t) {
    if (t != to && !trainers_[t].left) return true;
  }
  return false;
}

void DenseServer::answer(int trainer, const Wait& wait, Copies* copies) {
  const uint32_t sections = wait.states ? wait.states->sections : kValueSection;
  std::vector<Bytes> parts;
  if (may_change_while_sent(trainer)) {
    Bytes& copy = (*copies)[sections];
    if (!copy.owner) copy = copy_of_parts(store_.read(sections));
    if (copy.owner) parts = {copy};
  } else {
    parts = store_.read(sections);
  }
  Message message =
      wait.states
          ? with_sections(MessageType::kStates, bytes_of_head(*wait.states), std::move(parts))
          : with_sections(MessageType::kValues, bytes_of_head(outcome_), std::move(parts));
  message.header.version = version_;
  send(trainer, std::move(message));
}

void DenseServer::check_time(double now) {
  const double timeout = options_.timeout;
  if (count(&Peer::joined) < std::ssize(trainers_) && now >= started_ + timeout) {
    throw Error(ErrorCode::kTimeout, "no connection to " + name() + within_timeout(),
                missing(&Peer::joined), "see whether they have started");
  }
  if (count(&Peer::pushed) > 0 && now >= pushed_since_ + timeout) {
    throw Error(ErrorCode::kTimeout,
                (needs_norms_ ? "no norms of step " : "no gradients of step ") +
                    std::to_string(step_) + within_timeout(),
                late_in_step(), "see their logs");
  }
  if (const std::vector<int> late = roster_.overdue(now); !late.empty()) {
    throw Error(ErrorCode::kPeerLost,
                "has gone, and no process has taken its place" + within_timeout(),
                name_of(late.front()), "see its log");
  }
  if (rows_since_ && now >= *rows_since_ + timeout) {
    const std::vector<int> waiting = options_.tables->waiting();
    std::vector<std::string> names;
    for (int t = 0; t < std::ssize(trainers_); ++t) {
      if (std::ranges::find(waiting, t) == waiting.end()) names.push_back(name_of(t));
    }
    if (!names.empty()) {
      throw Error(ErrorCode::kTimeout, "no request for the rows of a step" + within_timeout(),
                  join_first(names, 4), "see their logs");
    }
    rows_since_ = now;  // all wait for the disk, before a shrink
  }
  for (int t = 0; t < std::ssize(trainers_); ++t) {
    const std::optional<Wait>& wait = trainers_[t].wait;
    if (!wait || now < wait->since + timeout) continue;
    const bool of_others = version_ >= 0 && version_ < wait->version;
    throw Error(
        ErrorCode::kTimeout,
        (of_others ? "no gradients for " : "no values for ") + name_of(t) + within_timeout(),
        !of_others ? name_of(0)
        : apart()  ? behind(wait->version)
                   : late_in_step(),
        "see their logs");
  }
}

double DenseServer::next_deadline() const {
  if (error_) return kNever;
  double since = kNever;
  if (count(&Peer::joined) < std::ssize(trainers_)) since = started_;
  if (count(&Peer::pushed) > 0) since = std::min(since, pushed_since_);
  if (rows_since_) since = std::min(since, *rows_since_);
  for (const Peer& peer : trainers_) {
    if (peer.wait) since = std::min(since, peer.wait->since);
  }
  return std::min(since + options_.timeout, roster_.next_deadline());
}

std::string DenseServer::missing(bool Peer::*flag) const {
  std::vector<std::string> names;
  for (int t = 0; t < std::ssize(trainers_); ++t) {
    if (!(trainers_[t].*flag)) names.push_back(name_of(t));
  }
  return join_first(names, 4);
}

std::string DenseServer::late_in_step() const {
  return needs_norms_ ? name_of(0) : missing(&Peer::pushed);
}

std::string DenseServer::behind(int64_t steps) const {
  std::vector<std::string> names;
  for (int t = 0; t < std::ssize(trainers_); ++t) {
    const Peer& peer = trainers_[t];
    if (!peer.left && !peer.meeting && peer.steps < steps) names.push_back(name_of(t));
  }
  return join_first(names, 4);
}

}  // namespace fleet::ps
