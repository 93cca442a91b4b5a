#include "ps/dense_server.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace fleet::ps {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::string within(double seconds) {
  return " within " + seconds_text(std::chrono::milliseconds(std::llround(seconds * 1000)));
}

Message with_sections(MessageType type, const Bytes& head, std::vector<Bytes> sections) {
  Message message{.header = {.type = type}, .parts = {head}};
  std::ranges::move(sections, std::back_inserter(message.parts));
  return message;
}

}  // namespace

DenseServer::DenseServer(const DenseServerOptions& options, BlockStore& store, double now)
    : options_(options),
      store_(store),
      started_(now),
      trainers_(options.own.trainers),
      roster_(options.own.trainers, options.timeout) {}

std::vector<ServerAction> DenseServer::step(ServerEvent event, double now) {
  if (error_) return {};
  actions_.clear();
  try {
    if (auto* received = std::get_if<Received>(&event)) {
      receive(*received, now);
    } else if (const auto* gone = std::get_if<Closed>(&event)) {
      closed(*gone, now);
    }
    if (!error_ && options_.tables) {
      send_all(options_.tables->poll());
      note_waiting_rows(now);
    }
    if (!error_) check_time(now);
  } catch (const std::exception& error) {
    return fail(error_of(error, name()));
  }
  return std::exchange(actions_, {});
}

std::vector<ServerAction> DenseServer::fail(const Error& error) {
  error_ = error;
  for (const Peer& peer : trainers_) {
    if (!peer.joined || peer.left) continue;
    actions_.push_back({peer.connection, failure_message(error), /*close=*/true});
  }
  return std::exchange(actions_, {});
}

bool DenseServer::complete() const { return count(&Peer::joined) == std::ssize(trainers_); }

bool DenseServer::done() const { return count(&Peer::left) == std::ssize(trainers_); }

void DenseServer::receive(Received& event, double now) {
  const MessageType type = event.message.header.type;
  if (roster_.is_retired(event.connection)) return;  // a replaced process sent it
  if (type == MessageType::kHello) return hello(event);
  const int trainer = trainer_of(event.connection);
  FLEET_CHECK(trainer >= 0, "a message of " + event.peer + " before its hello");
  FLEET_CHECK(!trainers_[trainer].left, "a message of " + name_of(trainer) + " after its goodbye");
  if (event.message.header.table > 0 || type == MessageType::kCommand) {
    return receive_rows(trainer, std::move(event.message), now);
  }
  switch (type) {
    case MessageType::kInitial:
      return initial(trainer, event.message);
    case MessageType::kPush:
      return push(trainer, std::move(event.message), now);
    case MessageType::kNorms:
      return norms(trainer, event.message);
    case MessageType::kPull:
    case MessageType::kPullStates:
      return pull(trainer, event.message, now);
    case MessageType::kGoodbye:
      return goodbye(trainer);
    case MessageType::kMeeting:
      return meet(trainer, event.message);
    default:
      FLEET_CHECK(false, "a message of type " + std::to_string(static_cast<int>(type)) + " from " +
                             name_of(trainer));
  }
}

// Rows need no waits of their own: a trainer pulls them when it has the values of its step, which
// come after the update of all tables.
void DenseServer::receive_rows(int trainer, Message message, double now) {
  const MessageType type = message.header.type;
  FLEET_CHECK(options_.tables, "a message about tables, without any");
  if (type == MessageType::kPull) {
    send_all(options_.tables->pull(trainer, std::move(message)));
  } else if (type == MessageType::kPush) {
    if (message.header.sequence <= trainers_[trainer].sequence) return;  // a retry
    options_.tables->push(trainer, std::move(message));
  } else if (type == MessageType::kCommand) {
    FLEET_CHECK(trainer == 0, "a command of " + name_of(trainer));
    send_all(options_.tables->command(trainer, message));
  } else {
    FLEET_CHECK(false, "a message of type " + std::to_string(static_cast<int>(type)) +
                           " about rows from " + name_of(trainer));
  }
  note_waiting_rows(now);
}

void DenseServer::note_waiting_rows(double now) {
  if (options_.tables->waiting().empty()) {
    rows_since_.reset();
  } else if (!rows_since_) {
    rows_since_ = now;
  }
}

void DenseServer::send_all(RowAnswers answers) {
  for (RowAnswer& answer : answers) {
    if (!trainers_[answer.trainer].left) send(answer.trainer, std::move(answer.message));
  }
}

// A trainer with another job file can only damage the job, so its hello ends it.
void DenseServer::refuse(const Received& event, const std::string& what, const std::string& next) {
  const Error error(ErrorCode::kUsage, what, name(), next);
  actions_.push_back({event.connection, failure_message(error), /*close=*/true});
  std::vector<ServerAction> to_all = fail(error);
  actions_ = std::move(to_all);
}

void DenseServer::hello(const Received& event) {
  const HelloHead& own = options_.own;
  const auto theirs = head_of<HelloHead>(event.message);
  const std::string who = "trainer " + std::to_string(theirs.trainer) + " at " + event.peer;
  const std::string same = "start all processes with the same job file and version of fleetrun";
  if (theirs.protocol != own.protocol) return refuse(event, who + " has another protocol", same);
  if (theirs.trainers != own.trainers || theirs.servers != own.servers) {
    return refuse(event,
                  who + " belongs to a job of " + std::to_string(theirs.trainers) +
                      " trainers and " + std::to_string(theirs.servers) +
                      " servers, this one has " + std::to_string(own.trainers) + " and " +
                      std::to_string(own.servers),
                  "start all processes with the same numbers");
  }
  if (theirs.server != own.server) {
    return refuse(event, who + " takes this server for server " + std::to_string(theirs.server),
                  "list the servers in one order on all hosts");
  }
  const bool known = theirs.trainer >= 0 && theirs.trainer < own.trainers;
  const bool again = known && takes_place(theirs);
  if (known && !again && theirs.incarnation > 0 && trainers_[theirs.trainer].joined) {
    const Error late(ErrorCode::kStale, "has ended, or has another process", who);
    return actions_.push_back({event.connection, failure_message(late), /*close=*/true});
  }
  if (!known || (trainers_[theirs.trainer].joined && !again)) {
    return refuse(event, who + " is not a new trainer of the job", "give each its own number");
  }
  if (theirs.parameters != own.parameters) {
    return refuse(event, "the parameters of " + who + " differ in names, sizes or types", same);
  }
  if (theirs.mode != own.mode) return refuse(event, "the mode of " + who + " differs", same);
  if (theirs.rule != own.rule) return refuse(event, "the optimizer of " + who + " differs", same);
  if (theirs.placement != own.placement) {
    return refuse(event, "the division into blocks of " + who + " differs", same);
  }
  if (theirs.tables != own.tables) return refuse(event, "the tables of " + who + " differ", same);
  if (again) return take_place(event, theirs);
  Peer& peer = trainers_[theirs.trainer];
  peer.connection = event.connection;
  peer.address = event.peer;
  peer.joined = true;
  send(theirs.trainer, {.header = {.type = MessageType::kHello, .version = version_},
                        .parts = {bytes_of_head(own)}});
}

bool DenseServer::takes_place(const HelloHead& theirs) const {
  const Peer& peer = trainers_[theirs.trainer];
  return apart() && peer.joined && !peer.left && version_ >= 0 &&
         roster_.accepts(theirs.trainer, theirs.incarnation);
}

// Its pushes begin with sequence 1 again.
void DenseServer::take_place(const Received& event, const HelloHead& theirs) {
  Peer& peer = trainers_[theirs.trainer];
  const int before = peer.connection;
  if (!roster_.is_lost(theirs.trainer)) actions_.push_back({before, std::nullopt, /*close=*/true});
  roster_.replace(theirs.trainer, theirs.incarnation, before);
  notes_.push_back("another process at " + event.peer + " has taken the place of " +
                   name_of(theirs.trainer) + ": it continues from step " +
                   std::to_string(peer.steps));
  if (options_.tables) options_.tables->replace(theirs.trainer);
  peer = {
      .connection = event.connection, .address = event.peer, .joined = true, .steps = peer.steps};
  send(theirs.trainer, {.header = {.type = MessageType::kHello, .version = peer.steps},
                        .parts = {bytes_of_head(options_.own)}});
}

void DenseServer::lose(int trainer, const std::string& why, double now) {
  Peer& peer = trainers_[trainer];
  roster_.lose(trainer, peer.connection, now);
  peer.wait.reset();
  notes_.push_back(name_of(trainer) + " is lost after its step " + std::to_string(peer.steps) +
                   ": " + why + "; another process can take its place" + within(options_.timeout));
}

std::vector<ServerAction> DenseServer::abandon_lost(std::vector<int>* abandoned) {
  *abandoned = roster_.abandon();
  try {
    for (const int trainer : *abandoned) {
      trainers_[trainer].left = true;
      if (options_.tables) options_.tables->leave(trainer);
    }
    if (!abandoned->empty() && version_ >= 0) {
      follow_slowest();
      answer_waits();
    }
  } catch (const std::exception& error) {
    return fail(error_of(error, name()));
  }
  return std::exchange(actions_, {});
}

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

// A trainer that a signal has stopped trains no further, so that the others would wait in vain.
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

void DenseServer::goodbye(int trainer) {
  if (count(&Peer::pushed) > 0) {
    throw Error(ErrorCode::kPeerLost,
                "has ended, while others are at step " + std::to_string(step_), name_of(trainer),
                "give all trainers the same number of steps");
  }
  trainers_[trainer].left = true;
  if (options_.tables) options_.tables->leave(trainer);
  if (!apart() || version_ < 0) return;
  follow_slowest();
  answer_waits();
}

void DenseServer::closed(const Closed& event, double now) {
  const int trainer = trainer_of(event.connection);
  if (trainer < 0 || trainers_[trainer].left) return;
  const std::string why = event.why.empty() ? "it closed the connection" : event.why;
  if (apart() && version_ >= 0) return lose(trainer, why, now);
  throw Error(ErrorCode::kPeerLost, "has gone: " + why, name_of(trainer), "see its log");
}

void DenseServer::check_time(double now) {
  const double timeout = options_.timeout;
  if (count(&Peer::joined) < std::ssize(trainers_) && now >= started_ + timeout) {
    throw Error(ErrorCode::kTimeout, "no connection to " + name() + within(timeout),
                missing(&Peer::joined), "see whether they have started");
  }
  if (count(&Peer::pushed) > 0 && now >= pushed_since_ + timeout) {
    throw Error(ErrorCode::kTimeout,
                (needs_norms_ ? "no norms of step " : "no gradients of step ") +
                    std::to_string(step_) + within(timeout),
                late_in_step(), "see their logs");
  }
  if (const std::vector<int> late = roster_.overdue(now); !late.empty()) {
    throw Error(ErrorCode::kPeerLost,
                "has gone, and no process has taken its place" + within(timeout),
                name_of(late.front()), "see its log");
  }
  if (rows_since_ && now >= *rows_since_ + timeout) {
    const std::vector<int> waiting = options_.tables->waiting();
    std::vector<std::string> names;
    for (int t = 0; t < std::ssize(trainers_); ++t) {
      if (std::ranges::find(waiting, t) == waiting.end()) names.push_back(name_of(t));
    }
    if (!names.empty()) {
      throw Error(ErrorCode::kTimeout, "no request for the rows of a step" + within(timeout),
                  join_first(names, 4), "see their logs");
    }
    rows_since_ = now;  // all wait for the disk, before a shrink
  }
  for (int t = 0; t < std::ssize(trainers_); ++t) {
    const std::optional<Wait>& wait = trainers_[t].wait;
    if (!wait || now < wait->since + timeout) continue;
    const bool of_others = version_ >= 0 && version_ < wait->version;
    throw Error(ErrorCode::kTimeout,
                (of_others ? "no gradients for " : "no values for ") + name_of(t) + within(timeout),
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

void DenseServer::send(int trainer, Message message) {
  if (roster_.is_lost(trainer)) return;
  actions_.push_back({trainers_[trainer].connection, std::move(message)});
}

void DenseServer::accept(int trainer, const Message& message) {
  send(trainer, {.header = {.type = MessageType::kAccepted,
                            .sequence = message.header.sequence,
                            .version = version_}});
}

int DenseServer::trainer_of(ConnectionId connection) const {
  for (int t = 0; t < std::ssize(trainers_); ++t) {
    if (trainers_[t].joined && trainers_[t].connection == connection) return t;
  }
  return -1;
}

int DenseServer::count(bool Peer::*flag) const {
  return static_cast<int>(std::ranges::count_if(trainers_, [&](const Peer& p) { return p.*flag; }));
}

std::string DenseServer::name_of(int trainer) const {
  const std::string& address = trainers_[trainer].address;
  return "trainer " + std::to_string(trainer) + (address.empty() ? "" : " at " + address);
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

std::string DenseServer::name() const { return "server " + std::to_string(options_.own.server); }

}  // namespace fleet::ps
