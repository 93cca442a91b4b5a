// The life of one job in the rendezvous, as a state machine: step(event, now) returns the messages
// to nodes (docs/reference/rendezvous_protocol.md). State of single phases is in job_phases.h.
// Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "rendezvous/job_phases.h"
#include "rendezvous/job_times.h"
#include "rendezvous/membership.h"
#include "rendezvous/restarts.h"
#include "rendezvous/types.h"
#include "transport/failure_detector.h"

namespace fleet {

// --- Events, in addition to TimePassed ---
struct SessionOpened {
  SessionId session;
};
struct SessionLost {  // the stream broke, or has ended
  SessionId session;
};
struct FromNode {
  SessionId session;
  wire::NodeMessage message;
};
struct HostEnds {};  // nodes without a verdict learn that node 0 is lost
using JobEvent = std::variant<SessionOpened, SessionLost, FromNode, TimePassed, HostEnds>;

// --- Actions ---
struct Outgoing {
  SessionId to;
  std::shared_ptr<const wire::HostMessage> message;  // shared between recipients
  bool last = false;                                 // ends the session after this message
  // Appended to each Assignment; encoded once (types.h).
  std::shared_ptr<const World> world = {};
};

class JobState : private JobPhases {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using JobPhases::Phase;

  // display_address: the host's address in messages to users of missing nodes ("10.0.0.1:6768").
  JobState(const JobSpec& spec, JobTimes times, std::string display_address, Time now);
  // Continues the job of a host that was lost.
  JobState(const JobSpec& spec, JobTimes times, std::string display_address, Time now,
           const FailoverState& from);

  std::vector<Outgoing> step(const JobEvent& event, Time now);
  // The latest time for the next TimePassed.
  Time next_deadline() const;

  Phase phase() const {
    return std::visit([](const auto& phase) { return phase.kPhase; }, phase_);
  }
  // The generation of the last world sent; 0 before the first.
  int generation() const { return world_ ? world_->id().generation() : 0; }
  bool is_member(SessionId session) const;
  const JobSpec& spec() const { return membership_.spec(); }
  const wire::JobConfig& config() const { return spec().config; }
  int joined() const { return static_cast<int>(membership_.members().size()); }
  // nullptr if the job has not ended, or never ran for lack of nodes.
  const Verdict* verdict() const;
  // The job's outcome, for nodes that join too late. Only after its end.
  const std::string& outcome() const { return std::get<Ended>(phase_).outcome; }

 private:
  struct Session {
    FailureDetector failure_detector;
    int node_rank = -1;  // in world_; -1: not part of it
    bool member = false;
  };

  // The current phase, if it is of this type or derives from it; otherwise nullptr.
  template <typename Wanted>
  Wanted* in() {
    const auto as = [](auto& phase) -> Wanted* {
      if constexpr (std::is_convertible_v<decltype(&phase), Wanted*>) {
        return &phase;
      } else {
        return nullptr;
      }
    };
    return std::visit(as, phase_);
  }
  template <typename Wanted>
  const Wanted* in() const {
    return const_cast<JobState*>(this)->in<Wanted>();
  }

  // --- Events ---
  void on(const SessionOpened& opened, Time now);
  void on(const SessionLost& lost, Time now);
  void on(const FromNode& from, Time now);
  void on(const TimePassed&, Time now);
  void on(const HostEnds&, Time now);
  void on_join(SessionId session, wire::Join info, Time now);
  void lose_earlier_session(const wire::Join& info, Time now);
  void on_stop_request(SessionId session, const wire::StopRequest& request, Time now);
  void on_node_failed(SessionId session, const std::string& how, Time now);
  void on_ready(SessionId session, int generation, Time now);
  void on_accepted(SessionId session, int generation, Time now);
  void on_stack_request(SessionId session, Time now);
  void on_rank_exited(Running& running, int node_rank, RankExit exit, Time now);
  void on_rank_stalled(Running& running, int node_rank, RankStall stall, Time now);
  void on_stacks(Running& running, int node_rank, Stacks stacks, Time now);
  void on_steps(Running& running, int node_rank, StepReport report, Time now);
  void on_live_request(SessionId session, Time now);
  void on_trace_request(SessionId session, TraceRequest request);
  void on_trace_answer(int node_rank, TraceAnswer answer);
  void on_finished(Running& running, int node_rank, Time now);
  void on_signal_request(int node_rank, int signal, Time now);

  // --- Sessions and messages ---
  Session* touch_member(SessionId session, Time now);
  void send(SessionId to, wire::HostMessage message, bool last = false);
  void send_assignment(SessionId to, int node_rank, bool with_history = false);
  void send_to_host(wire::HostMessage message);  // spares large jobs a broadcast of minor news
  enum class To { kAll, kRanks };                // kRanks: the nodes of the world, not spares
  void broadcast(wire::HostMessage message, To to = To::kAll);
  void refuse(SessionId session, const Error& error);
  void warn_of_skew(SessionId session, const wire::Join& info);
  HeartbeatTimes current_intervals() const;
  wire::HostMessage welcome() const;
  void end_startup(Time now);
  void expire_silent_sessions(Time now);
  void report_missing_nodes(Waiting& waiting, Time now);

  // --- Transitions ---
  void advance_forming(Forming& forming, Time now);
  void time_out();
  void start_if_complete(Time now);
  void propose(Time now);
  void agree(Agreeing& agreeing, Time now);
  void begin_generation(std::optional<Verdict> lost, Time now);
  void end_generation(Verdict cause, Time now);
  void gather(Stopping& stopping, Time now);
  void advance_gathering(Gathering& gathering, Time now);
  void end_without_quorum(Verdict reason, Time now);
  void scale_up(Running& running, Time now);
  void notify_newcomer(SessionId id, Time now);
  std::optional<Error> check_survivor(const wire::Join& info) const;
  void on_survivor_joined(FailingOver& failing, SessionId id, Time now);
  void complete_failover_if_ready(FailingOver& failing, Time now);
  // how: "its fleetrun vanished".
  void on_node_gone(SessionId session, const std::string& how, Time since, Time now);
  void on_node_lost_between(SessionId id, const Verdict& lost, Time now);
  void on_node_finished(Running& running, int node_rank, Time now);
  bool members_have_quorum() const;
  bool is_below_full_size() const;
  GenerationResult generation_result(const Verdict& verdict, Time now) const;

  // --- Verdicts ---
  Time root_cause_due(const Running& running) const;
  void decide_root_cause(Running& running, Time now);
  void decide_failed(RankExit exit, Time now);
  void decide_hang(const StackCollection& collection, const std::vector<CollectiveWait>& waits,
                   Time now);
  void start_stack_collection(Running& running, int node_rank, bool hang, Time now);
  void end_stack_collection(Running& running, Time now);
  void decide(Verdict verdict, Time now);
  Verdict lost_verdict(SessionId session, const std::string& how) const;
  void send_farewell(SessionId session, const Verdict& lost);
  Verdict node_verdict(Verdict::Kind kind, int node_rank) const;
  Verdict stopped_verdict(int node_rank, int signal, const std::string& more) const;

  JobTimes times_;
  std::string display_address_;
  Membership membership_;
  Restarts restarts_;
  std::map<SessionId, Session> sessions_;
  SuspensionDetector suspension_;
  Time silence_due_ = Time::max();  // no session is lost earlier
  bool started_up_;
  std::optional<Time> startup_ends_at_;
  std::shared_ptr<const World> world_;  // the last one sent
  // The nodes whose launchers received this signal since it was passed on.
  struct UserSignal {
    Time at;
    std::set<int> from;
  };
  std::map<int, UserSignal> user_signals_;
  Any phase_;
  std::vector<Outgoing> outgoing_;  // of this step
};

}  // namespace fleet
