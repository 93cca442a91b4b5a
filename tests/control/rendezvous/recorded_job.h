// A JobState for tests: its clock is a number, its nodes are sessions, and what they hear is kept.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/job_state.h"
#include "tests/control/rendezvous/nodes.h"

namespace fleet {

class RecordedJob {
 public:
  explicit RecordedJob(JobSpec job, JobTimes times = {})
      : spec(std::move(job)), state(spec, times, "a:6768", now) {}
  RecordedJob(JobSpec job, const FailoverState& from, JobState::Time begin)
      : spec(std::move(job)), now(begin), state(spec, {}, "b:6768", now, from) {}

  void join(SessionId session, const NodeInfo& info) {
    state.on_session_opened(session, now);
    state.on_join(session, info, now);
    collect();
  }
  void collect() {
    for (auto& out : state.take_outgoing()) outgoing.push_back(std::move(out));
  }
  template <typename Event>
  std::vector<Event> events_for(SessionId session) const {
    std::vector<Event> found;
    for (const Outgoing& out : outgoing) {
      if (out.to != session) continue;
      if constexpr (std::is_same_v<Event, wire::Start> || std::is_same_v<Event, Welcome>) {
        if (const auto* wanted = std::get_if<Event>(out.event.get())) found.push_back(*wanted);
      } else if (const auto* event = std::get_if<RendezvousEvent>(out.event.get())) {
        if (const auto* wanted = std::get_if<Event>(event)) found.push_back(*wanted);
      }
    }
    return found;
  }
  // The refusal that ended this session.
  Error refusal(SessionId session) const {
    const auto found = events_for<Refusal>(session);
    return found.size() == 1 ? found[0].error : Error(ErrorCode::kInternal, "not refused once");
  }
  Verdict verdict(SessionId session) const {
    const auto found = events_for<Verdict>(session);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Verdict{} : found[0];
  }

  JobSpec spec;
  JobState::Time now{};
  JobState state;
  std::vector<Outgoing> outgoing;
};

// A job in which nothing is done that a test does not say. Session i+1 is the node of the i-th
// address.
class SteadyJob : public RecordedJob {
 public:
  using RecordedJob::RecordedJob;

  // What is shared is encoded once.
  bool shares_last_with(SessionId one, SessionId other) const {
    const auto last = [this](SessionId session) {
      const HostEvent* event = nullptr;
      for (const Outgoing& out : outgoing) {
        if (out.to == session) event = out.event.get();
      }
      return event;
    };
    return last(one) != nullptr && last(one) == last(other);
  }
  void join_all() {
    for (size_t i = 0; i < spec.addresses.size(); ++i) {
      join(i + 1, node_of(spec, spec.addresses[i]));
    }
    outgoing.clear();
  }
  void after(std::chrono::milliseconds time) {
    now += time;
    state.advance(now);
    collect();
  }
  void heartbeat_all_for(std::chrono::milliseconds time, std::vector<SessionId> sessions) {
    for (auto end = now + time; now < end;) {
      for (SessionId session : sessions) state.on_heartbeat(session, now);
      after(std::chrono::milliseconds(500));
    }
  }
  void fails(SessionId session, int rank, int code, bool killed = false) {
    RankExit exit;
    exit.set_rank(rank);
    exit.set_local_rank(rank % 2);
    exit.set_code(code);
    exit.set_killed_by_us(killed);
    exit.set_ran_for_ms(1500);
    state.on_rank_exited(session, exit, now);
    collect();
  }
  // Until failures that came together have been put in order.
  void settle() { after(std::chrono::milliseconds(250)); }
  void finish(SessionId session) {
    state.on_finished(session, now);
    collect();
  }
};

}  // namespace fleet
