// A JobState for tests: its clock is a number, its nodes are sessions, and what they hear is kept.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/job_state.h"
#include "tests/rendezvous/nodes.h"

namespace fleet {

class HeardJob {
 public:
  explicit HeardJob(JobSpec job, JobTimes times = {})
      : spec(std::move(job)), state(spec, times, "a:6768", now) {}
  HeardJob(JobSpec job, const Inheritance& from, JobState::Time begin)
      : spec(std::move(job)), now(begin), state(spec, {}, "b:6768", now, from) {}

  void join(SessionId session, const NodeInfo& info) {
    state.opened(session, now);
    state.join(session, info, now);
    collect();
  }
  void collect() {
    for (auto& out : state.take_outgoing()) heard.push_back(std::move(out));
  }
  template <typename Event>
  std::vector<Event> heard_by(SessionId session) const {
    std::vector<Event> found;
    for (const Outgoing& out : heard) {
      if (out.to != session) continue;
      if constexpr (std::is_same_v<Event, Start> || std::is_same_v<Event, Welcome>) {
        if (const auto* wanted = std::get_if<Event>(out.event.get())) found.push_back(*wanted);
      } else if (const auto* event = std::get_if<RendezvousEvent>(out.event.get())) {
        if (const auto* wanted = std::get_if<Event>(event)) found.push_back(*wanted);
      }
    }
    return found;
  }
  // The refusal that ended this session.
  Error refusal(SessionId session) const {
    const auto found = heard_by<Refusal>(session);
    return found.size() == 1 ? found[0].error : Error(ErrorCode::kInternal, "not refused once");
  }
  Verdict verdict(SessionId session) const {
    const auto found = heard_by<Verdict>(session);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Verdict{} : found[0];
  }

  JobSpec spec;
  JobState::Time now{};
  JobState state;
  std::vector<Outgoing> heard;
};

// A job in which nothing is done that a test does not say. Session i+1 is the node of the i-th
// address.
class SteadyJob : public HeardJob {
 public:
  using HeardJob::HeardJob;

  // What is shared is encoded once.
  bool shares_last_with(SessionId one, SessionId other) const {
    const auto last = [this](SessionId session) {
      const HostEvent* event = nullptr;
      for (const Outgoing& out : heard) {
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
    heard.clear();
  }
  void after(std::chrono::milliseconds time) {
    now += time;
    state.advance(now);
    collect();
  }
  void beat_all_for(std::chrono::milliseconds time, std::vector<SessionId> sessions) {
    for (auto end = now + time; now < end;) {
      for (SessionId session : sessions) state.beat(session, now);
      after(std::chrono::milliseconds(500));
    }
  }
  void fails(SessionId session, int rank, int code, bool killed = false) {
    RankExit exit;
    exit.rank = rank;
    exit.local_rank = rank % 2;
    exit.code = code;
    exit.killed_by_us = killed;
    exit.ran_for = std::chrono::milliseconds(1500);
    state.rank_exited(session, exit, now);
    collect();
  }
  // Until failures that came together have been put in order.
  void settle() { after(std::chrono::milliseconds(250)); }
  void finish(SessionId session) {
    state.finished(session, now);
    collect();
  }
};

}  // namespace fleet
