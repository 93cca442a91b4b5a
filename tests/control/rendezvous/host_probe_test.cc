// The host's session with itself, and what the host makes of heartbeats.
#include "rendezvous/host_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "rendezvous/job_host.h"
#include "tests/control/rendezvous/nodes.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

struct FakeStream final : NodeStream {
  void send(wire::NodeMessage message) override { on_send(std::move(message)); }
  void end() override {}
  void cancel() override { cancelled = true; }
  std::string peer() const override { return {}; }

  std::function<void(wire::NodeMessage)> on_send;
  bool cancelled = false;
};

template <typename Value>
Value soon(std::promise<Value>& promise) {
  auto future = promise.get_future();
  EXPECT_EQ(future.wait_for(1min), std::future_status::ready);
  return future.get();
}

TEST(HostProbe, Connected_SendsItsTokenAgainAndAgain) {
  FakeStream stream;
  std::promise<wire::NodeMessage> first, third;
  int sent = 0;
  stream.on_send = [&](wire::NodeMessage message) {
    if (++sent == 2) third.set_value(std::move(message));
  };
  const auto probe = HostProbe::start(
      [&](const std::shared_ptr<NodeStreamOwner>&, wire::NodeMessage message) -> NodeStream* {
        first.set_value(std::move(message));
        return &stream;
      },
      7, 1ms);
  const wire::NodeMessage begin = soon(first), later = soon(third);
  EXPECT_EQ(begin.heartbeat().probe(), 7u);
  EXPECT_EQ(later.heartbeat().probe(), 7u);
  EXPECT_LT(begin.heartbeat().sent_ns(), later.heartbeat().sent_ns());
  EXPECT_LE(later.heartbeat().sent_ns(), monotonic_ns());
  probe->stop();
  EXPECT_TRUE(stream.cancelled);
}

TEST(HostProbe, StreamEnds_ConnectsAgain) {
  FakeStream stream;
  stream.on_send = [](const wire::NodeMessage&) {};
  std::promise<void> again;
  int connections = 0;
  std::promise<std::shared_ptr<NodeStreamOwner>> connected;
  const auto probe = HostProbe::start(
      [&](std::shared_ptr<NodeStreamOwner> owner, const wire::NodeMessage&) -> NodeStream* {
        if (++connections == 1) connected.set_value(std::move(owner));
        if (connections == 2) again.set_value();
        return &stream;
      },
      7, 1ms);
  soon(connected)->on_stream_end(&stream, {StreamEnd::Kind::kBroken, "reset"});
  soon(again);
  probe->stop();
}

struct FakeSession final : NodeSession {
  void send(EncodedMessage message) override {
    std::string bytes;
    for (const auto& part : message) bytes += *part;
    EXPECT_TRUE(messages.emplace_back().ParseFromString(bytes));
  }
  void end() override { ended = true; }
  int echoes() const {
    return static_cast<int>(std::count_if(messages.begin(), messages.end(),
                                          [](const auto& one) { return one.has_heartbeat(); }));
  }

  std::vector<wire::HostMessage> messages;
  bool ended = false;
};

// A host that is in no hurry.
struct PatientHost {
  PatientHost() {
    times.max_silence = times.first_progress = 24h;
    host.emplace(spec, times, "10.0.0.1:6768", nullptr);
  }
  void send(FakeSession* session, wire::NodeMessage message) {
    EXPECT_TRUE(host->on_message(session, std::move(message)));
  }
  void heartbeat(FakeSession* session, bool sample, uint64_t probe = 0) {
    wire::NodeMessage message;
    message.mutable_heartbeat()->set_sample(sample);
    message.mutable_heartbeat()->set_probe(probe);
    send(session, std::move(message));
  }

  JobSpec spec = job_of(2);
  JobTimes times;
  std::optional<JobHost> host;
};

TEST(JobHost, Heartbeat_IsEchoedForASampleOnly) {
  PatientHost job;
  FakeSession session;
  ASSERT_TRUE(job.host->open(&session));
  job.send(&session, envelope(&wire::NodeMessage::mutable_join, node_of(job.spec, "10.0.0.1")));
  job.heartbeat(&session, false);
  EXPECT_EQ(session.echoes(), 0);
  job.heartbeat(&session, true);
  ASSERT_EQ(session.echoes(), 1);
  EXPECT_GT(session.messages.back().heartbeat().host_ns(), 0);
  job.host->on_session_done(&session);
}

TEST(JobHost, Probe_IsNoNode) {
  PatientHost job;
  FakeSession probe, other;
  ASSERT_TRUE(job.host->open(&probe));
  ASSERT_TRUE(job.host->open(&other));
  for (int i = 0; i < 3; ++i) job.heartbeat(&probe, true, job.host->probe_token());
  EXPECT_TRUE(probe.messages.empty());
  EXPECT_FALSE(probe.ended);
  job.heartbeat(&other, true, job.host->probe_token() + 2);  // a guess
  EXPECT_EQ(other.echoes(), 1);
  for (FakeSession* session : {&probe, &other}) job.host->on_session_done(session);
}

}  // namespace
}  // namespace fleet
