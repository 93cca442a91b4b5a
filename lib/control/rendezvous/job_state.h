// The life of one job in the rendezvous, as a state machine: step(event, now) returns the messages
// to nodes (docs/reference/rendezvous_protocol.md). The phases of job_phases.h handle what only
// they expect. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/running_clock.h"
#include "rendezvous/job_phases.h"

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
// What had arrived at the host by then has been received: a silence is judged up to that time, on
// the steady clock. nullopt: unknown, as at first; then up to the present.
struct TakenIn {
  std::optional<Job::Time> until;
};
using JobEvent = std::variant<SessionOpened, SessionLost, FromNode, TimePassed, HostEnds, TakenIn>;

class JobState {
 public:
  using Time = Job::Time;
  using Phase = JobPhase;

  // display_address: the host's address in messages to users of missing nodes ("10.0.0.1:6768").
  JobState(const JobSpec& spec, const JobTimes& times, std::string display_address, Time now)
      : job_(spec, times, std::move(display_address), now),
        clock_(now, job_.nodes.poll_interval()) {}
  // Continues the job of a host that was lost.
  JobState(const JobSpec& spec, const JobTimes& times, std::string display_address, Time now,
           const FailoverState& from);

  std::vector<Outgoing> step(JobEvent event, Time now);
  // The latest time for the next TimePassed.
  Time next_deadline() const;
  // The clock of the job's limits, which stands still between calls of step().
  RunningClock& clock() { return clock_; }
  // How long to send nothing to a node that sends heartbeats.
  std::chrono::milliseconds quiet_limit() const { return job_.nodes.intervals().max_silence / 3; }

  Phase phase() const {
    return std::visit([](const auto& phase) { return phase.kPhase; }, job_.phase);
  }
  int generation() const { return job_.generation(); }
  const World* world() const { return job_.world.get(); }  // the last one sent; nullptr: none
  bool is_member(SessionId session) const { return job_.nodes.is_member(session); }
  const wire::JobConfig& config() const { return job_.config(); }
  int joined() const { return static_cast<int>(job_.nodes.membership().members().size()); }
  // nullptr if the job has not ended, or never ran for lack of nodes.
  const Verdict* verdict() const;
  // The job's outcome, for nodes that join too late. Only after its end.
  const std::string& outcome() const { return std::get<phases::Ended>(job_.phase).outcome; }

 private:
  void on(const SessionOpened& opened);
  void on(const SessionLost& lost);
  void on(FromNode& from);
  void on(const TimePassed&);
  void on(const HostEnds&);
  void on(const TakenIn& taken);
  void on_join(SessionId session, wire::Join info);
  void lose_earlier_session(const wire::Join& info);
  std::optional<Error> check_survivor(const wire::Join& info) const;
  void on_stop_request(SessionId session, int node_rank, const wire::StopRequest& request);
  void on_node_failed(SessionId session, const std::string& how);
  // how: "its fleetrun vanished". since: its last sign of life.
  void on_node_gone(SessionId session, const std::string& how, Time since);
  void send_farewell(SessionId session, const Verdict& lost);

  Job job_;
  RunningClock clock_;
  bool was_away_ = false;         // since the last TimePassed
  bool deferred_ = false;         // the last TimePassed, for that reason
  std::optional<Time> taken_in_;  // on the steady clock
};

}  // namespace fleet
