// The life of one job as the rendezvous sees it: forming, running, ended; and between two epochs of
// a job that is restarted: stopping, gathering, agreeing (docs/reference/rendezvous_protocol.md).
// Pure: the time is an argument, what is to be said is collected until somebody takes it. Not
// thread-safe.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/causes.h"
#include "rendezvous/membership.h"
#include "rendezvous/pace.h"
#include "rendezvous/restarts.h"
#include "rendezvous/types.h"

namespace fleet {

// The node is in and beats from now on.
struct Welcome {
  std::chrono::milliseconds beat{0}, silence{0};
};
// All nodes of this epoch know its world: the Assignment that came before counts.
struct Start {
  int epoch = 0;
};
using HostEvent = std::variant<Welcome, Start, RendezvousEvent>;

struct Outgoing {
  SessionId to;
  std::shared_ptr<const HostEvent> event;  // the same object where several hear it
  bool last = false;                       // its session ends after this
};

struct JobTimes {
  std::chrono::milliseconds timeout{300'000};  // all must have come, from the beginning
  std::chrono::milliseconds beat{500};         // nodes beat this often
  std::chrono::milliseconds silence{3'000};    // and are lost after this long without
  // While a large job comes together its host has thousands to answer: until it has run for
  // `settles_in`, beats come and silence is noticed only so often. 0: as ever.
  std::chrono::milliseconds early_beat{0}, early_silence{0}, settles_in{0};
  std::chrono::milliseconds first_progress{2'000};   // when those who wait hear who is missing
  std::chrono::milliseconds progress_every{10'000};  // and again
  CauseTimes causes = {};                            // how the first failure is told from others
  std::chrono::milliseconds stacks{4'500};           // how long nodes may look at a hang
};

// So that a node is seen to be gone within `timeout`: how often nodes beat, and how long one may be
// silent. The last beat is at most one interval old when it goes, and it takes a moment to act.
std::chrono::milliseconds beat_for(std::chrono::milliseconds timeout);
std::chrono::milliseconds silence_for(std::chrono::milliseconds timeout);

class JobState {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Phase {
    kSucceeding,  // the host was lost: the others of its last epoch come here
    kForming,     // nodes come
    kRunning,     // an epoch runs
    kStopping,    // it is over: its ranks are being stopped
    kGathering,   // nodes are missing for the next one
    kAgreeing,    // the next one's world has been told, and is not known to all
    kEnded,
  };

  // reach: how the host is named in what missing nodes' users are told ("10.0.0.1:6768").
  JobState(JobSpec spec, JobTimes times, std::string reach, Time now);
  // Goes on where a host that was lost has stopped.
  JobState(JobSpec spec, JobTimes times, std::string reach, Time now, const Inheritance& from);

  // --- What happens ---
  void opened(SessionId session, Time now);
  void join(SessionId session, NodeInfo info, Time now);
  void beat(SessionId session, Time now);
  void rank_exited(SessionId session, RankExit exit, Time now);
  void rank_stalled(SessionId session, RankStall stall, Time now);
  void stacks_came(SessionId session, std::vector<RankStack> stacks, Time now);
  void pace_came(SessionId session, std::vector<RankPace> pace, Time now);
  void finished(SessionId session, Time now);
  void ready(SessionId session, int epoch, Time now);     // nothing of that epoch is left there
  void accepted(SessionId session, int epoch, Time now);  // that epoch's world is known there
  // at_ns, at_error_ns: when its launcher was told, as of a RankExit.
  void stop_wished(SessionId session, int signal, Time now, bool kill = false, int64_t at_ns = 0,
                   int64_t at_error_ns = -1);
  void signal_wished(SessionId session, int signal, Time now);
  void stacks_wished(SessionId session, Time now);
  void left(SessionId session, Time now);  // said goodbye
  // Its node cannot go on, and still hears how the job ends; how: "its guardian was killed".
  void node_failed(SessionId session, const std::string& how, Time now);
  void lost(SessionId session, const std::string& how, Time now);  // the stream broke: "vanished"
  void advance(Time now);                                          // time passed
  void shut_down(Time now);  // the host ends: everyone without a verdict hears that node 0 is lost

  // When advance() is to be called at the latest.
  Time next_deadline() const;
  std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }

  Phase phase() const { return phase_; }
  // Of the world that was told last; 0 before the first.
  int epoch() const { return epoch_; }
  bool is_member(SessionId session) const;
  const JobSpec& spec() const { return membership_.spec(); }
  int joined() const { return static_cast<int>(membership_.members().size()); }
  const std::optional<Verdict>& verdict() const { return verdict_; }
  // How the job ended, for those who come too late.
  const std::string& outcome() const { return outcome_; }

 private:
  struct Session {
    Time last_heard;
    std::list<SessionId>::iterator place;  // in by_silence_
    int node_rank = -1;                    // in world_; -1: it is not part of it
    int base_rank = -1;                    // in the world before
    bool member = false, finished = false;
  };

  void touch(Session* session, Time now);
  void forget(SessionId session);
  Session* heard(SessionId session, Time now);
  void say(SessionId to, HostEvent event, bool last = false);
  void say(SessionId to, std::shared_ptr<const HostEvent> event, bool last = false);
  void say_host(const RendezvousEvent& event);  // what concerns few is not sent to thousands
  void say_all(const RendezvousEvent& event);
  void say_ranks(const RendezvousEvent& event);  // to all nodes of the world, not to spares
  void refuse(SessionId session, const Error& error);
  void tell_skew(SessionId session, const NodeInfo& info);
  std::optional<Error> settle_survivor(const NodeInfo& info) const;
  void survivor_came(SessionId id, Time now);
  void succeed_if_ready(Time now);
  void propose(Time now);
  bool counts_here() const;
  void begin_epoch(Time now);
  void epoch_over(Verdict cause, Time now);
  void gather(Time now);
  void start_if_complete(Time now);
  void gone_between(SessionId id, const Verdict& lost, Time now);
  void give_up_divided(Time now);
  bool is_short() const;
  void tell_newcomer(SessionId id, Time now);
  void advance_between(Time now);
  void grow(Time now);
  bool quorum_is_here() const;
  std::string after_restarts() const;
  EpochEnd end_of_epoch(const Verdict& verdict, Time now) const;
  void tell_who_is_missing(Time now);
  void time_out();
  Welcome pace() const;
  void settle(Time now);
  void allow_for_suspension(Time now);
  void lose_silent(Time now);
  // how: "its fleetrun vanished".
  void node_gone(SessionId session, const std::string& how, Time since, Time now);
  Verdict lost_verdict(SessionId session, const std::string& how) const;
  void say_farewell(SessionId session, const Verdict& lost);
  void one_less(Time now);
  Time cause_due() const;
  void decide_cause(Time now);
  void decide_failed(RankExit exit, Time now);
  void decide_lost(int node_rank, const std::string& how, Time now);
  void start_look(const StackOrder& order, Time now);
  void end_look(Time now);
  void decide(Verdict verdict, Time now);
  Verdict node_verdict(VerdictKind kind, int node_rank) const;
  Verdict stopped_verdict(int node_rank, int signal, const std::string& more) const;

  JobTimes times_;
  std::string reach_;
  Time started_, last_advance_, next_progress_;
  Phase phase_ = Phase::kForming;
  int epoch_ = 0;
  Membership membership_;
  Restarts restarts_;
  std::map<SessionId, Session> sessions_;
  bool settled_;
  std::optional<Time> settles_at_;
  std::list<SessionId> by_silence_;  // the longest silent first: nobody else has to be looked at
  std::shared_ptr<const World> world_;
  std::optional<StopOrder> stop_;
  std::optional<RankExit> killed_;  // a rank that a launcher stopped although nobody ordered it
  // The nodes whose launchers got this signal since it was passed on.
  struct UserSignal {
    Time at;
    std::set<int> from;
  };
  std::map<int, UserSignal> user_signals_;
  // The nodes are looking at their ranks: because one hangs, or somebody asked.
  struct Look {
    Time due;
    std::set<int> awaited;  // nodes
    std::vector<RankStack> stacks;
    std::vector<SessionId> asked_by;
    std::optional<RankStall> hang;  // the first rank of which it was noticed
    int node_rank = -1;             // its
  };
  void decide_hang(const Look& look, Time now);
  std::optional<Look> look_;
  Causes causes_;                   // failures that wait for the verdict
  std::optional<Verdict> verdict_;  // none where it never ran for lack of nodes
  std::string outcome_;
  int unfinished_ = 0;  // nodes of the running job
  Pace pace_;
  // Of the epoch that runs.
  Time epoch_began_;
  std::optional<Time> grow_due_;  // nodes have come that it is restarted with then
  // Between two epochs.
  Verdict cause_;                // why the last one is over
  std::set<SessionId> awaited_;  // stopping: not ready yet; agreeing: not accepted yet
  // Who of the world before has accepted the one that is agreed on, or was told by a host that is
  // lost; and how many nodes that one had, 0 where nothing depends on it any more.
  std::set<int> base_ranks_;
  int base_nodes_ = 0;
  std::shared_ptr<const World> base_world_;  // succeeding: that one
  std::optional<Verdict> lost_;              // the last node that was lost since
  Time gather_due_;  // gathering, or forming with fewer nodes: it is given up, or begins
  std::vector<Outgoing> outgoing_;
};

}  // namespace fleet
