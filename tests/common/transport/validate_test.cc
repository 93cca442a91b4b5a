#include "transport/validate.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <limits>

#include "base/error.h"

namespace fleet {
namespace {

// The link's validate() accepts the message.
template <typename Message>
bool valid(Message message) {
  try {
    if constexpr (requires { validate(&message); }) {
      validate(&message);
    } else {
      validate(message);
    }
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return false;
  }
}

template <typename Enum>
Enum unknown() {
  return static_cast<Enum>(99);
}

TEST(Validate, UnknownKinds_AreRefusedOnEveryLink) {
  EXPECT_FALSE(valid(wire::NodeMessage()));
  EXPECT_FALSE(valid(wire::HostMessage()));
  EXPECT_FALSE(valid(wire::GuardianCommand()));
  EXPECT_FALSE(valid(wire::GuardianEvent()));
  EXPECT_FALSE(valid(wire::ControlRequest()));
  EXPECT_FALSE(valid(wire::ControlReply()));
  EXPECT_FALSE(valid(wire::ClientMessage()));
  EXPECT_FALSE(valid(wire::FleetdMessage()));
}

TEST(Validate, UnknownEnumValuesOfTheHost_AreRefused) {
  wire::HostMessage message;
  Verdict& verdict = *message.mutable_verdict();
  EXPECT_TRUE(valid(message));
  verdict.add_history()->set_kind(unknown<Verdict::Kind>());
  EXPECT_FALSE(valid(message));
  verdict.clear_history();
  verdict.set_kind(unknown<Verdict::Kind>());
  EXPECT_FALSE(valid(message));
  message.mutable_restart()->mutable_cause()->set_kind(unknown<Verdict::Kind>());
  EXPECT_FALSE(valid(message));
  message.mutable_restart()->mutable_cause()->set_kind(Verdict::HANG);
  EXPECT_TRUE(valid(message));
  message.mutable_restart()->mutable_end()->set_kind(unknown<Verdict::Kind>());
  EXPECT_FALSE(valid(message));
  message.mutable_peer()->set_kind(PeerEvent::LOST);
  EXPECT_TRUE(valid(message));
  message.mutable_peer()->set_kind(unknown<PeerEvent::Kind>());
  EXPECT_FALSE(valid(message));
}

TEST(Validate, UnknownEnumValuesOfAFleetd_AreRefused) {
  wire::FleetdMessage message;
  message.mutable_ended()->mutable_verdict()->mutable_verdict()->set_kind(Verdict::NODE_LOST);
  EXPECT_TRUE(valid(message));
  message.mutable_ended()->mutable_verdict()->mutable_verdict()->set_kind(unknown<Verdict::Kind>());
  EXPECT_FALSE(valid(message));
  wire::JobInfo& job = *message.mutable_jobs()->add_jobs();
  EXPECT_TRUE(valid(message));
  job.set_phase(unknown<wire::JobInfo::Phase>());
  EXPECT_FALSE(valid(message));
  EXPECT_FALSE(valid(job));
  job.clear_phase();
  job.mutable_record()->mutable_verdict()->mutable_verdict()->set_kind(unknown<Verdict::Kind>());
  EXPECT_FALSE(valid(message));
}

TEST(Validate, TimesOfAJob_AreNumbers) {
  wire::JobInfo job;
  EXPECT_TRUE(valid(job));
  job.set_ended(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(valid(job));
  job.clear_ended();
  job.mutable_record()->mutable_verdict()->set_unix_time(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(valid(job));
}

// Its text says what failed.
TEST(Validate, UnknownCodeOfAFailure_IsAccepted) {
  wire::HostMessage message;
  message.mutable_refused()->set_code(unknown<wire::Failure::Code>());
  EXPECT_TRUE(valid(message));
}

TEST(Validate, OversizedJoin_IsRefused) {
  wire::NodeMessage message;
  wire::Join& join = *message.mutable_join();
  EXPECT_TRUE(valid(message));
  join.mutable_node()->set_hostname(std::string(10'000, 'x'));
  EXPECT_FALSE(valid(message));
  join.Clear();
  for (int i = 0; i < 5000; ++i) join.mutable_node()->add_ports(i);
  EXPECT_FALSE(valid(message));
  join.Clear();
  for (int i = 0; i < 300; ++i)
    add_value("name", "value", join.mutable_job()->mutable_fingerprint());
  EXPECT_FALSE(valid(message));
}

TEST(Validate, Stops_HaveASignalAndAGraceTime) {
  wire::ControlRequest request;
  const auto stop_is_valid = [&](int signal, int grace_ms) {
    request.mutable_stop()->set_signal(signal);
    request.mutable_stop()->set_grace_ms(grace_ms);
    return valid(request);
  };
  EXPECT_TRUE(stop_is_valid(SIGTERM, 0));
  EXPECT_TRUE(stop_is_valid(SIGUSR1, 5));
  EXPECT_FALSE(stop_is_valid(0, 0));
  EXPECT_FALSE(stop_is_valid(1000, 0));
  EXPECT_FALSE(stop_is_valid(SIGTERM, -1));
  wire::ClientMessage message;
  message.mutable_stop_named()->mutable_how()->set_signal(SIGINT);
  EXPECT_TRUE(valid(message));
  message.mutable_stop_named()->mutable_how()->set_signal(SIGUSR1);  // stops no job
  EXPECT_FALSE(valid(message));
}

TEST(Validate, TextsOfAVerdict_AreCut) {
  wire::HostMessage message;
  Verdict& verdict = *message.mutable_verdict();
  verdict.set_kind(Verdict::RANK_FAILED);
  RankExit& exit = *verdict.mutable_exit();
  exit.set_at_ns(-5);
  exit.set_at_error_ns(0);
  exit.set_tail("tail\xff\n");
  exit.mutable_error()->set_message("KeyError");
  const std::string before = message.SerializeAsString();
  validate(&message);
  EXPECT_EQ(message.SerializeAsString(), before);
  exit.set_tail(std::string(1 << 20, 'x') + "end");
  *message.mutable_restart()->mutable_cause()->mutable_exit() = RankExit(exit);
  validate(&message);
  EXPECT_EQ(message.restart().cause().exit().tail().size(), 64u << 10);
  EXPECT_TRUE(message.restart().cause().exit().tail().ends_with("xend"));
}

TEST(Validate, LongTextsOfAnExit_AreCut) {
  wire::NodeMessage message;
  RankExit& exit = *message.mutable_exit();
  exit.set_cause(std::string(5 << 10, 'c'));
  exit.set_at_error_ns(-1);
  validate(&message);
  EXPECT_EQ(exit.cause().size(), 4u << 10);
  EXPECT_FALSE(exit.has_at_error_ns());
  EXPECT_FALSE(exit.has_error());
  exit.mutable_error()->set_message(std::string(5 << 10, 'm'));
  exit.mutable_error()->set_callstack(std::string(1 << 20, 's') + "innermost");
  validate(&message);
  EXPECT_EQ(exit.error().message().size(), 4u << 10);
  EXPECT_EQ(exit.error().callstack().size(), 16u << 10);
  EXPECT_TRUE(exit.error().callstack().ends_with("sinnermost"));
}

TEST(Validate, EndingsOfRanks_AreCut) {
  wire::NodeMessage message;
  wire::Stacks& stacks = *message.mutable_stacks();
  for (int rank = 0; rank < 5000; ++rank) stacks.add_endings()->set_error(std::string(2000, 'e'));
  stacks.mutable_endings(0)->set_log_path(std::string(2000, 'l'));
  validate(&message);
  EXPECT_EQ(stacks.endings_size(), 4096);
  EXPECT_EQ(stacks.endings(0).error().size(), 1024u);
  EXPECT_EQ(stacks.endings(0).log_path().size(), 1024u);
}

TEST(Validate, StacksBeyondTheLimits_AreCut) {
  wire::ControlReply reply;
  StackCluster& cluster = *reply.mutable_stacks()->mutable_stacks()->add_clusters();
  for (int i = 0; i < 100; ++i) cluster.add_frames(std::string(1000, 'f'));
  cluster.set_missing(std::string(2 << 10, 'm'));
  validate(&reply);
  ASSERT_EQ(cluster.frames_size(), 64);
  EXPECT_EQ(cluster.frames(63).size(), 256u);
  EXPECT_EQ(cluster.missing().size(), 1u << 10);
}

TEST(Validate, Collectives_AreCutAndGroupsOfAnySizeRefused) {
  wire::NodeMessage message;
  wire::Stacks& stacks = *message.mutable_stacks();
  GroupCalls& group = *stacks.add_collectives()->add_groups();
  group.set_name(std::string(10'000, 'x'));
  for (int i = 0; i < 1000; ++i) group.add_calls()->set_purpose(std::string(10'000, 'x'));
  for (const int number : {0, 1, 4096}) group.add_ranks(number);
  validate(&message);
  EXPECT_LE(group.name().size(), 256u);
  EXPECT_EQ(group.calls_size(), 256);
  EXPECT_LE(group.calls(0).purpose().size(), 256u);
  group.set_ranks(2, INT32_MAX);  // would be enumerated
  EXPECT_FALSE(valid(message));
}

}  // namespace
}  // namespace fleet
