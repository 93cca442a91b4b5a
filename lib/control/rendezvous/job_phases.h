// The phases of a job in the rendezvous: each is a type with the state that only it has, and
// handles the events that only it expects. What they share is a Job.
//
// A transition of Job destroys the current phase: the handler that made it returns at once. Pure:
// the time is Job::now, which does not count the time in which the host did not run. Not
// thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "diagnosis/bottleneck.h"
#include "diagnosis/live_history.h"
#include "diagnosis/live_table.h"
#include "diagnosis/root_cause.h"
#include "diagnosis/stacks.h"
#include "diagnosis/straggler_detector.h"
#include "rendezvous/job_nodes.h"
#include "rendezvous/replacements.h"
#include "rendezvous/restarts.h"
#include "rendezvous/types.h"

namespace fleet {

struct Job;

enum class JobPhase { kFailingOver, kForming, kRunning, kStopping, kGathering, kAgreeing, kEnded };

namespace phases {

using Time = std::chrono::steady_clock::time_point;

// Nodes are missing.
struct Waiting {
  void report_missing_nodes(Job& job);

  Time began, due;  // due: when to give up or, while forming, to begin with fewer nodes
  Time next_progress;
};

// A generation is over, and the next has not begun.
struct GenerationOver {
  // For a job that cannot continue.
  const Verdict& reason() const { return lost ? *lost : cause; }

  Verdict cause;                // why the generation ended
  std::optional<Verdict> lost;  // the last node lost since then
};

// A world counts once a majority of its base, the preceding world, has accepted it: those nodes
// follow no other world with that base.
struct Base {
  bool committed() const;

  int nodes = 0;           // 0: none, or known to be committed
  std::set<int> accepted;  // ranks in the base
};

// The host was lost: nodes of the last generation reconnect here.
struct FailingOver : Waiting {
  static constexpr JobPhase kPhase = JobPhase::kFailingOver;
  void on_joined(Job& job, SessionId session);
  void on_time(Job& job);

  Verdict lost;
  Time generation_began;
  std::optional<int64_t> step;  // that the generation has reached, if known
  std::shared_ptr<const World>
      before;  // the base of the world, if that one may be committed instead
  Base base;
};

struct Forming : Waiting {  // nodes join
  static constexpr JobPhase kPhase = JobPhase::kForming;
  void on_stop(Job& job, SessionId session, int signal);
  void on_left(Job& job, SessionId session);
  void on_time(Job& job);
};

struct Running {
  static constexpr JobPhase kPhase = JobPhase::kRunning;
  explicit Running(const Job& job);

  // session, node_rank: the sender.
  void on_message(Job& job, SessionId session, int node_rank, const wire::NodeMessage& message);
  void on_stop(Job& job, int node_rank, const wire::StopRequest& request);
  void on_node_lost(Job& job, SessionId session, const Verdict& verdict, Time since);
  void on_time(Job& job);

  Time began;
  RootCauseAnalyzer root_cause;  // failures that await the verdict
  std::optional<Verdict> lost;   // a node whose loss ends this generation
  std::optional<StopCommand> stop;
  std::optional<Time> scale_up_due;  // when to restart with nodes that have joined
  StragglerDetector stragglers;
  LiveTable live;
  BottleneckAnalyzer bottleneck;

 private:
  void on_rank_exited(Job& job, RankExit exit, int node_rank);
  bool replace(Job& job, const RankExit& exit);
  void on_rank_stalled(Job& job, int node_rank, RankStall stall);
  void on_stacks(Job& job, int node_rank, Stacks of_node);
  void on_stack_request(Job& job, SessionId session, int node_rank,
                        const wire::StackRequest& request);
  void on_steps(Job& job, int node_rank, StepReport report);
  void on_finished(Job& job, int node_rank);
  void on_signal(Job& job, int node_rank, int signal);
  Time root_cause_due(const Job& job) const;
  void decide_root_cause(Job& job);
  void decide_failed(Job& job, RankExit exit);
  void decide_hang(Job& job, const StackCollection& collection);
  void begin_stacks(Job& job, int node_rank, bool hang, std::chrono::milliseconds limit);
  void end_stacks(Job& job);
  void on_node_finished(Job& job, int node_rank);
  void scale_up(Job& job);

  std::set<int> unfinished_;        // nodes
  std::map<int, int> replaced_;     // how often, by trainer
  std::optional<RankExit> killed_;  // a rank that a launcher stopped without an order
  std::optional<StackCollection> stacks_;
  std::vector<SessionId> requesters_;  // asked for these stacks
};

struct Stopping : GenerationOver {  // the ranks of the last generation are being stopped
  static constexpr JobPhase kPhase = JobPhase::kStopping;
  void on_ready(Job& job, SessionId session);
  void on_left(Job& job, SessionId session);

  std::set<SessionId> awaited;
};

struct Gathering : Waiting, GenerationOver {  // nodes are missing for the next generation
  static constexpr JobPhase kPhase = JobPhase::kGathering;
  void on_time(Job& job);
};

struct Agreeing : GenerationOver {  // the next world was sent and not all nodes have accepted it
  static constexpr JobPhase kPhase = JobPhase::kAgreeing;
  void on_accepted(Job& job, SessionId session);
  void stop_awaiting(Job& job, SessionId session);

  std::map<SessionId, int> awaited;  // and their ranks in the base; -1: none
  Base base;
};

struct Ended {
  static constexpr JobPhase kPhase = JobPhase::kEnded;
  std::string outcome;
  std::optional<Verdict> verdict;  // nullopt if the job never ran for lack of nodes
};

using Any = std::variant<FailingOver, Forming, Running, Stopping, Gathering, Agreeing, Ended>;

}  // namespace phases

// The state that the phases of a job share, and the transitions between them.
struct Job {
  using Time = phases::Time;
  Job(const JobSpec& spec, const JobTimes& times, std::string address, Time begin);

  const JobSpec& spec() const { return nodes.membership().spec(); }
  const wire::JobConfig& config() const { return spec().config; }
  bool restarts_at_all() const { return spec().restarts.max_restarts > 0; }
  // The generation of the last world sent; 0 before the first.
  int generation() const { return world ? world->id().generation() : 0; }
  JobNodes::Moment moment() const { return {now, steady_now}; }
  // Whether the job runs with fewer nodes than it may.
  bool is_below_full_size() const { return world->nodes_size() < config().nnodes(); }
  bool have_quorum() const;  // in the last world

  // The current phase, if it is of this type or derives from it; otherwise nullptr.
  template <typename Wanted>
  Wanted* in() {
    const auto as = [](auto& current) -> Wanted* {
      if constexpr (std::is_convertible_v<decltype(&current), Wanted*>) {
        return &current;
      } else {
        return nullptr;
      }
    };
    return std::visit(as, phase);
  }
  template <typename Wanted>
  const Wanted* in() const {
    return const_cast<Job*>(this)->in<Wanted>();
  }

  // --- Verdicts ---
  Verdict node_verdict(Verdict::Kind kind, int node_rank) const;  // -1: of no node
  // how: "its fleetrun vanished".
  Verdict lost_verdict(SessionId session, const std::string& how);
  // `more`: follows the node, or replaces it if it has no rank.
  Verdict stopped_verdict(int node_rank, int signal, const std::string& more) const;

  // --- Transitions ---
  void decide(Verdict verdict);  // the job has ended
  // Ends the job without a verdict of its ranks.
  void refuse_all(const Error& error);
  // Without a quorum of the last world: ends this host, and its nodes look for another one.
  void step_down(const Verdict& reason);
  // Of a running generation, or of one whose host was lost.
  void end_generation(Verdict cause);
  void gather();
  void start_if_complete();
  void propose();
  // `lost`: a node that was lost since the world was sent.
  void begin_generation(std::optional<Verdict> lost);

  // Informs a node that joined while the job runs, or that exceeds the number of nodes to run.
  void notify_newcomer(SessionId session);
  void send_assignment(SessionId to, int node_rank, bool with_history = false);
  GenerationResult result_of(const Verdict& verdict) const;

  std::string display_address;
  JobNodes nodes;
  Restarts restarts;
  Replacements replacements;           // covers all generations of this host
  std::shared_ptr<const World> world;  // the last one sent
  // The nodes whose launchers received this signal since it was passed on; a restart changes
  // nothing.
  struct UserSignal {
    Time at;
    std::set<int> from;
  };
  std::map<int, UserSignal> user_signals;
  LiveHistory history;  // covers all generations
  phases::Any phase;
  Time now;         // the present event's, on a RunningClock: for limits
  Time steady_now;  // likewise, on the steady clock: to compare with times of messages
};

}  // namespace fleet
