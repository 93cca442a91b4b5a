// A job that is restarted, for tests.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/control/rendezvous/recorded_job.h"

namespace fleet {

inline JobSpec restartable(JobSpec spec, int restarts = 3) {
  spec.restarts.max_restarts = restarts;
  return spec;
}
inline JobSpec elastic(int min, int max) {
  JobSpec spec = restartable(job_of(max));
  spec.min_nodes = min;
  return spec;
}

// A job whose nodes heartbeat.
class RestartedJob : public RecordedJob {
 public:
  using RecordedJob::RecordedJob;

  void join(SessionId session, const wire::Join& info) {
    RecordedJob::join(session, info);
    alive.insert(session);
  }
  void join(SessionId session, const std::string& address, bool hosts = false) {
    join(session, node_of(spec, address, 2, hosts));
  }
  // Sessions 1, 2, ... are a, b, ...; the first one hosts.
  void join_all(int nodes) {
    for (int i = 0; i < nodes; ++i) {
      join(static_cast<SessionId>(i + 1), std::string(1, static_cast<char>('a' + i)), i == 0);
    }
  }
  void lose(SessionId session) {
    alive.erase(session);
    step(SessionLost{session});
  }
  void fail(SessionId session, int code = 7) {
    RankExit exit;
    exit.set_code(code);
    send(session, &wire::NodeMessage::mutable_exit, exit);
    after(std::chrono::milliseconds(250));  // failures that come together are put in order
  }
  void ready(SessionId session) { ready(session, state.generation()); }
  void ready(SessionId session, int generation) {
    wire::Ready message;
    message.set_generation(generation);
    send(session, &wire::NodeMessage::mutable_ready, message);
  }
  void accept(SessionId session) { accept(session, state.generation()); }
  void accept(SessionId session, int generation) {
    wire::Accept message;
    message.set_generation(generation);
    send(session, &wire::NodeMessage::mutable_accept, message);
  }
  void all_ready() {
    for (const SessionId session : alive) ready(session);
  }
  void all_accept() {
    for (const SessionId session : alive) accept(session);
  }
  // Everything that nodes do between two generations.
  void restart() {
    all_ready();
    all_accept();
  }
  void after(std::chrono::milliseconds time) {
    for (const auto end = now + time; now < end;) {
      for (const SessionId session : alive) heartbeat(session);
      now += std::min<JobState::Time::duration>(end - now, std::chrono::milliseconds(500));
      step(TimePassed{});
    }
  }
  std::vector<std::string> addresses(SessionId session = 1) const {
    std::vector<std::string> all;
    const auto told = events_for<Assignment>(session);
    if (told.empty()) return all;
    for (const wire::Node& node : told.back().world->nodes()) all.push_back(node.address());
    return all;
  }

  std::set<SessionId> alive;
};

}  // namespace fleet
