// The search for a job's host by a node that has lost its own: which nodes it asks, which one it
// joins, when it hosts the job itself, and when it gives up. Time in which this process did not run
// does not count. Pure: the time is an argument. Not thread-safe.
//
// Nodes may decide differently without harm, because a host continues only with a quorum
// (election.h). They meet in the end: a node joins any host that it finds, and a host that waits
// for a quorum yields to one that has continued or that comes earlier in the order.
#pragma once

#include <chrono>
#include <vector>

#include "base/running_clock.h"

namespace fleet {

// The answer of a node that was asked.
enum class HostAnswer {
  kNone,       // no answer, or it does not host this job
  kWaits,      // it hosts the job and waits for a quorum of the asking node's last world
  kContinues,  // it hosts the job, and has had a quorum
};

// Ranks refer to the last world.
struct HostSearchSettings {
  std::vector<bool> can_host;  // by rank
  int self = -1;               // this node; -1: it was not part of that world
  bool may_host = false;       // this node
  // Each node waits this long for the one before it in the order to become the host.
  std::chrono::milliseconds turn{0};
  std::chrono::milliseconds give_up{0};  // after this time without a host
};

class HostSearch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Step {
    enum class Action {
      kNone,
      kJoin,    // `node`; a node that hosts the job itself stops that
      kHost,    // this node hosts the job
      kLeave,   // the node that was joined does not answer
      kGiveUp,  // the end
    } action = Action::kNone;
    int node = -1;
  };

  HostSearch(HostSearchSettings settings, Time now);

  // Call it at due() or earlier.
  Step on_time(Time steady);
  Step on_answer(int node, HostAnswer answer, Time steady);
  void on_admitted();              // by the joined host
  void on_host_gone(Time steady);  // the joined host, or this node's own; or it refused this node
  // The nodes to ask now; on_answer() follows for each.
  std::vector<int> take_questions(Time steady);
  Time due(Time steady) const;
  bool hosts() const { return state_ == State::kHosting; }

 private:
  enum class State { kAsking, kJoining, kFollowing, kHosting };
  struct Question {
    int node;
    Time next;  // Time::max(): it was asked
  };

  bool asks() const { return state_ == State::kAsking || state_ == State::kHosting; }
  size_t place_of(int node) const;  // in order_; behind the last: it cannot host
  Time own_turn() const;
  Time next_question(int node, Time now) const;

  HostSearchSettings settings_;
  std::vector<int> order_;  // in which nodes become the host; the old host comes last
  std::vector<Question> questions_;
  State state_ = State::kAsking;
  RunningClock clock_;  // shows all times below, and those of questions_
  Time began_, deadline_, join_due_;
};

}  // namespace fleet
