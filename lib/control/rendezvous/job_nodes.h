// The nodes of a job at its host: their sessions and heartbeats, and the messages to them; the
// times of all that. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/root_cause.h"
#include "rendezvous/membership.h"
#include "rendezvous/types.h"
#include "transport/failure_detector.h"

namespace fleet {

// The times of a job in the rendezvous, by its size and by --heartbeat_timeout.
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
  std::chrono::milliseconds stacks{12'500};  // how long nodes may take to collect stacks, dumps
};

// Heartbeat interval and silence limit such that a lost node is noticed within `timeout`. The last
// heartbeat is at most one interval old when the node dies, and a reaction takes a moment.
std::chrono::milliseconds heartbeat_interval_for(std::chrono::milliseconds timeout);
std::chrono::milliseconds max_silence_for(std::chrono::milliseconds timeout);

// Returns `times`, slower if so many nodes would cost the host too much: at most
// kHeartbeatsPerSecond reach it, and the silence limit exceeds the interval by at least half of the
// requested limit. While a job of kLargeJob nodes or more forms, silence is checked less often
// (JobTimes::startup_max_silence).
JobTimes heartbeat_intervals_for(int nnodes, JobTimes times);

inline constexpr int kLargeJob = 1000;  // nodes; smaller ones send datagrams too
inline constexpr int kHeartbeatsPerSecond = 700;

struct Outgoing {
  SessionId to;
  std::shared_ptr<const wire::HostMessage> message;  // shared between recipients
  bool last = false;                                 // ends the session after this message
  // Appended to each Assignment; encoded once (types.h).
  std::shared_ptr<const World> world = {};
};

class JobNodes {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Session {
    Time heard;          // the last message, or the beginning, in the time of Job::now
    Time arrived;        // likewise, on the steady clock
    int node_rank = -1;  // in the world; -1: not part of it
    bool member = false;
  };
  // One moment on two clocks.
  struct Moment {
    Time now;     // Job::now
    Time steady;  // Job::steady_now
  };

  JobNodes(const JobSpec& spec, const JobTimes& times, Time now);

  const JobTimes& times() const { return times_; }
  Membership& membership() { return membership_; }
  const Membership& membership() const { return membership_; }
  const std::string& address(SessionId member) const;

  // --- Sessions ---
  void open(SessionId session, Moment at);
  void close(SessionId session) { sessions_.erase(session); }
  Session* find(SessionId session);          // nullptr: it is not open
  void admit(SessionId session, Moment at);  // a member of membership()
  // The member of this session, which sends something; nullptr: it has not joined.
  Session* touch_member(SessionId session, Moment at);
  bool is_member(SessionId session) const;
  const std::map<SessionId, Session>& sessions() const { return sessions_; }
  std::set<int> ranks_here() const;  // node ranks

  // --- Heartbeats ---
  // While the first generation starts, heartbeats are rarer: until JobTimes::startup_time after the
  // first call.
  void end_startup(Moment at);
  wire::HostMessage welcome() const;
  HeartbeatTimes intervals() const;
  // How often find_silent() is called at least.
  std::chrono::milliseconds poll_interval() const;
  // When this session is lost if it stays silent.
  Time silence_deadline(const Session& session) const {
    return session.heard + intervals().max_silence;
  }
  // Those who are lost, the longest silent one first, with the time on the steady clock of their
  // last message. Messages up to `taken_in` have been read: no node is lost later.
  std::vector<std::pair<Time, SessionId>> find_silent(Time now, Time taken_in);
  // Instead of find_silent(): read all received messages first.
  void defer_poll(Time now) { last_poll_ = now; }
  // When to poll next at the latest, if something is due at `due`.
  Time next_poll(Time due) const;

  // --- Messages ---
  void send(SessionId to, wire::HostMessage message, bool last = false);
  // `world`: follows the Assignment in `message`.
  void send_world(SessionId to, wire::HostMessage message, std::shared_ptr<const World> world);
  void send_to_host(wire::HostMessage message);  // avoids broadcasting minor news in large jobs
  enum class To { kAll, kRanks };                // kRanks: the nodes of the world, not spares
  void broadcast(wire::HostMessage message, To to = To::kAll);
  void refuse(SessionId session, const Error& error);  // and closes it
  // Reports differences that --allow_skew accepted. Called late, because node 0's launcher may have
  // joined after the others.
  void warn_of_skew(SessionId session);
  std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }

 private:
  const JobTimes times_;
  Membership membership_;
  std::map<SessionId, Session> sessions_;
  Time last_poll_;
  Time silence_due_ = Time::max();  // no session is lost earlier
  bool started_up_;
  std::optional<Time> startup_ends_at_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace fleet
