// The logic of a server with dense blocks: pure, without sockets or threads. dense_server.cc has
// the trainers that come and go, dense_server_updates.cc their pushes, dense_server_waits.cc the
// values that they wait for.
//
// Start: every trainer says hello. Trainer 0 sends initial values; the others pull them. A step:
// each trainer pushes its gradients and pulls values. When all have pushed, the server updates its
// blocks and answers. Sums are in the order of the trainers' ranks, whatever the order of arrival.
// If the update needs norms of gradients that several servers have, each first sends its sums of
// squares to trainer 0, which sends those of all to all.
// End: every trainer says goodbye.
//
// In async and geo, a push is applied when it arrives, whatever the others do. A pull waits only
// for the version that it names: the steps of the slowest trainer (max_staleness), without those
// that wait for the others themselves (kMeeting). A trainer that is lost may come back as another
// process (TrainerRoster), which continues after its last push.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "ps/block_store.h"
#include "ps/dense_payload.h"
#include "ps/table_host.h"
#include "ps/trainer_roster.h"
#include "strategy/server_settings.h"

namespace fleet::ps {

using ConnectionId = int;

// Events. A connection's id is not used again.
struct Received {
  ConnectionId connection = 0;
  std::string peer;  // "10.0.0.1:6070"
  Message message;
};
struct Closed {
  ConnectionId connection = 0;
  std::string why;  // "": the other end closed it
};
using ServerEvent = std::variant<Received, Closed, TimePassed>;

// The caller does this after an event, in this order.
struct ServerAction {
  ConnectionId connection = 0;
  std::optional<Message> message = {};  // to send
  bool close = false;                   // after it
};

struct DenseServerOptions {
  HelloHead own = {};           // trainers, server, servers, mode and hashes; `trainer` is not used
  TableHost* tables = nullptr;  // null: no tables. Must outlive the server
  double timeout = 1800;        // seconds that one trainer waits for others
};

class DenseServer {
 public:
  // store: must outlive this object. now: seconds.
  DenseServer(const DenseServerOptions& options, BlockStore& store, double now);

  // Returns no actions after an error.
  std::vector<ServerAction> step(ServerEvent event, double now);
  // Ends the job with this reason, which all trainers receive.
  std::vector<ServerAction> fail(const Error& error);
  // The time of the next event at the latest.
  double next_deadline() const;
  // All trainers have said hello.
  bool complete() const;
  // All trainers have said goodbye, or are abandoned.
  bool done() const;
  // The job stops: nothing takes the place of the trainers that are lost. Fills in their numbers.
  std::vector<ServerAction> abandon_lost(std::vector<int>* abandoned);
  // Lines for the log since the last call.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }
  // The error that has ended the job.
  const std::optional<Error>& error() const { return error_; }

  std::string name() const;  // "server 0"
  // Training steps of all trainers in the values; -1: none yet.
  int64_t version() const { return version_; }
  // For ServerCounters: the steps of the fastest trainer beyond version(), 0 in sync; seconds in
  // which it had a part of the pushes of a step; whether a trainer has said goodbye.
  int64_t ahead() const;
  double waited_for_pushes() const { return waited_for_pushes_; }
  bool ending() const { return count(&Peer::left) > 0; }

 private:
  // An answer that a trainer waits for.
  struct Wait {
    double since = 0;
    int64_t version = 0;                 // that the values must have
    std::optional<StatesHead> states{};  // kPullStates; empty: kPull
  };
  struct Peer {
    ConnectionId connection = -1;
    std::string address;
    bool joined = false, left = false;
    // The ordinal of the meeting in which it waits for the others, until one of the met pushes.
    std::optional<uint64_t> meeting = {};
    uint64_t sequence = 0;             // the last push had it
    int64_t steps = 0;                 // training steps that its pushes include, if apart
    std::optional<Message> push = {};  // in the current step, until it is in the sums
    bool pushed = false;               // in the current step
    std::optional<Wait> wait = {};
  };
  using Actions = std::vector<ServerAction>;

  void receive(Received& event, double now);
  void hello(const Received& event);
  bool takes_place(const HelloHead& theirs) const;
  void take_place(const Received& event, const HelloHead& theirs);
  void initial(int trainer, const Message& message);
  void receive_rows(int trainer, Message message, double now);
  void note_waiting_rows(double now);
  void send_all(RowAnswers answers);
  void push(int trainer, Message message, double now);
  void check_push(int trainer, const Message& message) const;
  void add_pushes(double now);
  void norms(int trainer, const Message& message);
  // In async and geo.
  bool apart() const { return options_.own.mode != static_cast<uint32_t>(ServerMode::kSync); }
  void apply(int trainer, const Message& message);
  void meet(int trainer, const Message& message);
  void end_meeting(uint64_t ordinal);
  int64_t steps_of_slowest() const;
  void follow_slowest();
  void update();
  void pull(int trainer, const Message& message, double now);
  void goodbye(int trainer);
  void closed(const Closed& event, double now);
  void lose(int trainer, const std::string& why, double now);
  void check_time(double now);
  void answer_waits();
  bool can_answer(const Wait& wait) const;
  bool may_change_while_sent(int to) const;
  using Copies = std::map<uint32_t, Bytes>;  // sections that several trainers receive
  void answer(int trainer, const Wait& wait, Copies* copies);
  void send(int trainer, Message message);
  void accept(int trainer, const Message& message);
  void refuse(const Received& event, const std::string& what, const std::string& next);
  int trainer_of(ConnectionId connection) const;  // -1: none
  std::string within_timeout() const;             // " within 1800 s"
  int count(bool Peer::*flag) const;
  std::string name_of(int trainer) const;       // "trainer 2 at 10.0.0.1:5000"
  std::string missing(bool Peer::*flag) const;  // "trainers 1 and 2"
  std::string late_in_step() const;             // whom the step waits for
  std::string behind(int64_t steps) const;      // likewise: those with fewer steps, if apart

  const DenseServerOptions options_;
  BlockStore& store_;
  const double started_;
  std::vector<Peer> trainers_;
  TrainerRoster roster_;
  std::vector<std::string> notes_;
  Actions actions_;  // caused by the current event
  std::optional<Error> error_;
  int64_t version_ = -1;
  uint64_t ordinal_ = 0;  // the last kInitial had it
  int64_t step_ = 0;      // which the current pushes belong to
  double pushed_since_ = 0;
  double waited_for_pushes_ = 0;
  std::optional<double> rows_since_ = {};  // pulls of rows wait for those of other trainers
  int added_ = 0;                          // trainers whose gradients are in the sums
  bool needs_norms_ = false;               // all are; trainer 0 is to send the norms
  PushHead heads_ = {};                    // all pushes of the step together
  ValuesHead outcome_ = {};                // the last update had it
};

}  // namespace fleet::ps
