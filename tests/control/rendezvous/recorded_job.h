// A JobState for tests: its clock is a number, its nodes are sessions, and their messages are kept.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rendezvous/job_state.h"
#include "tests/control/rendezvous/nodes.h"
#include "transport/control_messages.h"

namespace fleet {

class RecordedJob {
 public:
  explicit RecordedJob(JobSpec job, JobTimes times = {})
      : spec(std::move(job)), state(spec, times, "a:6768", now) {}
  RecordedJob(JobSpec job, const FailoverState& from, JobState::Time begin)
      : spec(std::move(job)), now(begin), state(spec, {}, "b:6768", now, from) {}

  void join(SessionId session, const wire::Join& info) {
    step(SessionOpened{session});
    send(session, &wire::NodeMessage::mutable_join, info);
  }
  void step(const JobEvent& event) {
    for (auto& out : state.step(event, now)) outgoing.push_back(std::move(out));
  }
  // The node sends this message.
  template <typename Message>
  void send(SessionId session, Message* (wire::NodeMessage::*part)(),
            const std::type_identity_t<Message>& message = {}) {
    step(FromNode{session, envelope(part, message)});
  }
  void heartbeat(SessionId session) { send(session, &wire::NodeMessage::mutable_heartbeat); }
  void stop(SessionId session, int signal) {
    send(session, &wire::NodeMessage::mutable_stop, stop_request(signal));
  }
  void signal(SessionId session, int signal) {
    wire::SignalRequest request;
    request.set_signal(signal);
    send(session, &wire::NodeMessage::mutable_signal, request);
  }
  void fail_node(SessionId session, const std::string& how) {
    wire::NodeFailure failure;
    failure.set_how(how);
    send(session, &wire::NodeMessage::mutable_failure, failure);
  }
  void finish(SessionId session) { send(session, &wire::NodeMessage::mutable_finished); }
  template <typename Event>
  std::vector<Event> events_for(SessionId session) const {
    std::vector<Event> found;
    for (const Outgoing& out : outgoing) {
      if (out.to != session) continue;
      if constexpr (std::is_same_v<Event, Assignment>) {
        if (out.message->has_assignment()) {
          found.push_back({out.world, out.message->assignment().node_rank(), {}});
        }
      } else if (const Event* wanted = message_in<Event>(*out.message)) {
        found.push_back(*wanted);
      }
    }
    return found;
  }
  // The refusal that ended this session.
  Error refusal(SessionId session) const {
    const auto found = events_for<wire::Failure>(session);
    return found.size() == 1 ? from_wire(found[0])
                             : Error(ErrorCode::kInternal, "not refused once");
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

  // Whether both sessions got the same object as their last message: a shared message is encoded
  // once.
  bool shares_last_with(SessionId one, SessionId other) const {
    const auto last = [this](SessionId session) {
      const wire::HostMessage* message = nullptr;
      for (const Outgoing& out : outgoing) {
        if (out.to == session) message = out.message.get();
      }
      return message;
    };
    return last(one) != nullptr && last(one) == last(other);
  }
  void join_all() {
    SessionId session = 0;
    for (const std::string& address : spec.config.addresses()) {
      join(++session, node_of(spec, address));
    }
    outgoing.clear();
  }
  void after(std::chrono::milliseconds time) {
    now += time;
    step(TimePassed{});
  }
  // In calls as often as the host makes them.
  void pass(std::chrono::milliseconds time) { heartbeat_all_for(time, {}); }
  void heartbeat_all_for(std::chrono::milliseconds time, std::vector<SessionId> sessions) {
    for (auto end = now + time; now < end;) {
      for (SessionId session : sessions) heartbeat(session);
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
    send(session, &wire::NodeMessage::mutable_exit, exit);
  }
  // Until failures that came together have been put in order.
  void settle() { after(std::chrono::milliseconds(250)); }
};

}  // namespace fleet
