#include "ps/dense_server.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace fleet::ps {
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
                   ": " + why + "; another process can take its place" + within_timeout());
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

std::string DenseServer::within_timeout() const {
  const std::chrono::milliseconds timeout(std::llround(options_.timeout * 1000));
  return " within " + seconds_text(timeout);
}

std::string DenseServer::name() const { return "server " + std::to_string(options_.own.server); }

}  // namespace fleet::ps
