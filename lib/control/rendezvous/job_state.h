// The life of one job in the rendezvous: forming, running, ended. Between two generations of a job
// that restarts: stopping, gathering, agreeing (docs/reference/rendezvous_protocol.md). Pure: the
// time is an argument; outgoing messages are collected until take_outgoing(). Not thread-safe.
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

#include "rendezvous/failure_detector.h"
#include "rendezvous/membership.h"
#include "rendezvous/restarts.h"
#include "rendezvous/root_cause.h"
#include "rendezvous/straggler_detector.h"
#include "rendezvous/types.h"

namespace fleet {

// The node has joined and sends heartbeats from now on. Not the message: JobHost adds a key of its
// own for each session.
using Welcome = HeartbeatTimes;
using HostEvent = std::variant<Welcome, wire::Start, RendezvousEvent>;

struct Outgoing {
  SessionId to;
  std::shared_ptr<const HostEvent> event;  // shared between recipients
  bool last = false;                       // ends the session after this event
};

struct JobTimes {
  std::chrono::milliseconds timeout{300'000};         // all nodes must join within this time
  std::chrono::milliseconds heartbeat_interval{500};  // nodes send heartbeats this often
  std::chrono::milliseconds max_silence{3'000};       // a node silent for this long is lost
  // While a large job forms, its host has thousands of nodes to answer. Until the job has run for
  // `startup_time`, these longer intervals apply. 0: no difference.
  std::chrono::milliseconds startup_heartbeat_interval{0}, startup_max_silence{0}, startup_time{0};
  std::chrono::milliseconds first_progress{2'000};  // first report of missing nodes to waiting ones
  std::chrono::milliseconds progress_every{10'000};  // interval of later reports
  RootCauseTimes root_cause = {};                    // how the root cause of failures is found
  std::chrono::milliseconds stacks{4'500};           // how long nodes may take to collect stacks
};

// Heartbeat interval and silence limit such that a lost node is noticed within `timeout`. The last
// heartbeat is at most one interval old when the node dies, and a reaction takes a moment.
std::chrono::milliseconds heartbeat_interval_for(std::chrono::milliseconds timeout);
std::chrono::milliseconds max_silence_for(std::chrono::milliseconds timeout);

class JobState {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Phase {
    kFailingOver,  // the host was lost: nodes of the last generation reconnect here
    kForming,      // nodes join
    kRunning,      // a generation runs
    kStopping,     // the generation is over: its ranks are being stopped
    kGathering,    // nodes are missing for the next generation
    kAgreeing,     // the next world was sent and not all nodes have accepted it
    kEnded,
  };

  // reach: the host's address in messages to users of missing nodes ("10.0.0.1:6768").
  JobState(JobSpec spec, JobTimes times, std::string display_address, Time now);
  // Continues the job of a host that was lost.
  JobState(JobSpec spec, JobTimes times, std::string display_address, Time now,
           const FailoverState& from);

  // --- Events ---
  void on_session_opened(SessionId session, Time now);
  void on_join(SessionId session, NodeInfo info, Time now);
  void on_heartbeat(SessionId session, Time now);
  void on_rank_exited(SessionId session, RankExit exit, Time now);
  void on_rank_stalled(SessionId session, RankStall stall, Time now);
  void on_stacks(SessionId session, Stacks stacks, Time now);
  void on_steps(SessionId session, StepReport report, Time now);
  void on_finished(SessionId session, Time now);
  // No process of that generation is left there.
  void on_ready(SessionId session, int generation, Time now);
  void on_accepted(SessionId session, int generation,
                   Time now);  // that generation's world is known there
  void on_stop_request(SessionId session, const wire::StopRequest& request, Time now);
  void on_signal_request(SessionId session, int signal, Time now);
  void on_stack_request(SessionId session, Time now);
  void on_leave(SessionId session, Time now);  // the node said goodbye
  // The node cannot continue but still receives the outcome. how: "its guardian was killed".
  void on_node_failed(SessionId session, const std::string& how, Time now);
  void on_session_lost(SessionId session, const std::string& how,
                       Time now);  // the stream broke: "vanished"
  void advance(Time now);          // time passed
  void shut_down(Time now);  // the host ends: nodes without a verdict learn that node 0 is lost

  // The latest time for the next call of advance().
  Time next_deadline() const;
  std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }

  Phase phase() const { return phase_; }
  // The generation of the last world sent; 0 before the first.
  int generation() const { return generation_; }
  bool is_member(SessionId session) const;
  const JobSpec& spec() const { return membership_.spec(); }
  int joined() const { return static_cast<int>(membership_.members().size()); }
  const std::optional<Verdict>& verdict() const { return verdict_; }
  // How the job ended, for nodes that join too late.
  const std::string& outcome() const { return outcome_; }

 private:
  struct Session {
    Time last_received;
    std::list<SessionId>::iterator silence_position;  // in by_silence_
    int node_rank = -1;                               // in world_; -1: not part of it
    int base_rank = -1;                               // in the preceding world
    bool member = false, finished = false;
  };

  void touch(Session* session, Time now);
  void forget(SessionId session);
  Session* touch_member(SessionId session, Time now);
  void send(SessionId to, HostEvent event, bool last = false);
  void send(SessionId to, std::shared_ptr<const HostEvent> event, bool last = false);
  void send_to_host(const RendezvousEvent& event);  // spares large jobs a broadcast of minor news
  void broadcast(const RendezvousEvent& event);
  void broadcast_to_ranks(
      const RendezvousEvent& event);  // to all nodes of the world, not to spares
  void refuse(SessionId session, const Error& error);
  void warn_of_skew(SessionId session, const NodeInfo& info);
  std::optional<Error> check_survivor(const NodeInfo& info) const;
  void on_survivor_joined(SessionId id, Time now);
  void complete_failover_if_ready(Time now);
  void propose(Time now);
  bool is_committed() const;
  void begin_generation(Time now);
  void end_generation(Verdict cause, Time now);
  void gather(Time now);
  void start_if_complete(Time now);
  void on_node_lost_between(SessionId id, const Verdict& lost, Time now);
  void end_without_quorum(Time now);
  bool is_below_full_size() const;
  void notify_newcomer(SessionId id, Time now);
  void advance_gathering(Time now);
  void scale_up(Time now);
  bool members_have_quorum() const;
  std::string restart_note() const;
  GenerationResult generation_result(const Verdict& verdict, Time now) const;
  void report_missing_nodes(Time now);
  void time_out();
  Welcome current_intervals() const;
  void end_startup(Time now);
  void allow_for_suspension(Time now);
  void expire_silent_sessions(Time now);
  // how: "its fleetrun vanished".
  void on_node_gone(SessionId session, const std::string& how, Time since, Time now);
  Verdict lost_verdict(SessionId session, const std::string& how) const;
  void send_farewell(SessionId session, const Verdict& lost);
  void on_node_finished(Time now);
  Time root_cause_due() const;
  void decide_root_cause(Time now);
  void decide_failed(RankExit exit, Time now);
  void decide_lost(int node_rank, const std::string& how, Time now);
  void start_stack_collection(int node_rank, bool hang, Time now);
  void end_stack_collection(Time now);
  void decide(Verdict verdict, Time now);
  Verdict node_verdict(Verdict::Kind kind, int node_rank) const;
  Verdict stopped_verdict(int node_rank, int signal, const std::string& more) const;

  JobTimes times_;
  std::string display_address_;
  Time started_, last_advance_, next_progress_;
  Phase phase_ = Phase::kForming;
  int generation_ = 0;
  Membership membership_;
  Restarts restarts_;
  std::map<SessionId, Session> sessions_;
  bool started_up_;
  std::optional<Time> startup_ends_at_;
  std::list<SessionId> by_silence_;  // longest silent first, so that a check stops early
  std::shared_ptr<const World> world_;
  std::optional<StopCommand> stop_;
  std::optional<RankExit> killed_;  // a rank that a launcher stopped without an order
  // The nodes whose launchers received this signal since it was passed on.
  struct UserSignal {
    Time at;
    std::set<int> from;
  };
  std::map<int, UserSignal> user_signals_;
  // A stack collection in progress, for a hang or on request.
  struct StackCollection {
    Time due;
    std::set<int> awaited;  // nodes
    Stacks stacks;
    std::vector<SessionId> requesters;
    std::optional<RankStall> hang;  // the first rank that was reported
    int node_rank = -1;             // that rank's node
  };
  void decide_hang(const StackCollection& collection, Time now);
  std::optional<StackCollection> stack_collection_;
  RootCauseAnalyzer root_cause_;    // failures that await the verdict
  std::optional<Verdict> verdict_;  // nullopt if the job never ran for lack of nodes
  std::string outcome_;
  int unfinished_ = 0;  // nodes of the running job
  StragglerDetector stragglers_;
  // Of the running generation.
  Time generation_start_;
  std::optional<Time> scale_up_due_;  // when to restart with nodes that have joined
  // Between two generations.
  Verdict cause_;                // why the last generation ended
  std::set<SessionId> awaited_;  // stopping: not ready yet; agreeing: not accepted yet
  // The ranks, in the preceding world, of the nodes that accepted the current world or received it
  // from a host that is lost; and the size of that preceding world, 0 once it no longer matters.
  std::set<int> base_ranks_;
  int base_nodes_ = 0;
  std::shared_ptr<const World> base_world_;  // succeeding: the preceding world
  std::optional<Verdict> lost_;              // the last node lost since then
  Time gather_due_;  // gathering, or forming with fewer nodes: when to give up or to begin
  std::vector<Outgoing> outgoing_;
};

}  // namespace fleet
