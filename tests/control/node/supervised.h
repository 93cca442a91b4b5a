// A launcher's Supervision for tests, with effects that are expected.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "node/supervision.h"

namespace fleet {

class MockEffects : public SupervisionEffects {
 public:
  // Messages to the rendezvous.
  MOCK_METHOD(void, report, (const RankExit&));
  MOCK_METHOD(void, report_steps, (const StepReport&));
  MOCK_METHOD(void, report_stall, (const RankStall&));
  MOCK_METHOD(void, send_stacks, (const Stacks&));
  MOCK_METHOD(void, finish_node, ());
  MOCK_METHOD(void, ready, (int));
  MOCK_METHOD(void, report_failure, (const std::string&));
  MOCK_METHOD(void, request_kill, (int));
  MOCK_METHOD(void, request_stop, (int, Grace));
  void send(wire::NodeMessage message) override {
    using Kind = wire::NodeMessage;
    switch (message.kind_case()) {
      case Kind::kExit:
        return report(message.exit());
      case Kind::kSteps:
        return report_steps(message.steps());
      case Kind::kStall:
        return report_stall(message.stall());
      case Kind::kStacks:
        return send_stacks(message.stacks());
      case Kind::kFinished:
        return finish_node();
      case Kind::kReady:
        return ready(message.ready().generation());
      case Kind::kFailure:
        return report_failure(message.failure().how());
      case Kind::kStop:
        return message.stop().kill()
                   ? request_kill(message.stop().signal())
                   : request_stop(message.stop().signal(), grace_of(message.stop()));
      default:
        ADD_FAILURE() << "an unexpected message: " << message.kind_case();
    }
  }
  // The rest.
  MOCK_METHOD(void, collect_stacks, (), (override));
  MOCK_METHOD(void, stop_ranks, (int, Grace), (override));
  MOCK_METHOD(void, kill_ranks, (), (override));
  MOCK_METHOD(void, record_verdict, (const Verdict&), (override));
  MOCK_METHOD(void, warn, (const std::string&), (override));
  MOCK_METHOD(void, print_verdict, (const std::string&), (override));
  MOCK_METHOD(void, report_error, (const std::string&), (override));
  MOCK_METHOD(void, end, (int), (override));
};

inline RankExit ended(int local_rank, int code, int signal, const std::string& tail,
                      bool killed_by_us = false) {
  RankExit exit;
  exit.set_local_rank(local_rank);
  exit.set_code(code);
  exit.set_signal(signal);
  exit.set_tail(tail);
  exit.set_killed_by_us(killed_by_us);
  return exit;
}

inline StopCommand stop_command(int signal, int node_rank = 0) {
  StopCommand command;
  command.set_signal(signal);
  command.set_node_rank(node_rank);
  command.set_node("10.0.0." + std::to_string(node_rank + 1));
  return command;
}
inline StopCommand kill_command(int signal) {
  StopCommand command = stop_command(signal);
  command.set_kill(true);
  return command;
}

inline RankStall stalled(int local_rank) {
  RankStall stall;
  stall.set_local_rank(local_rank);
  stall.set_quiet_for_ms(5000);
  return stall;
}

inline StackCommand stack_command(int node_rank, bool hang) {
  StackCommand command;
  command.set_node_rank(node_rank);
  command.set_hang(hang);
  return command;
}

// Node 1 of two, with two ranks each: this node's are 2 and 3.
inline Assignment sample_assignment() {
  auto world = std::make_shared<World>();
  world->world_size = 4;
  world->nodes.resize(2);
  for (int node = 0; node < 2; ++node) {
    world->nodes[node].node_rank = node;
    world->nodes[node].first_rank = 2 * node;
    world->nodes[node].ports = {6070, 6071};
    world->nodes[node].devices.resize(2);
  }
  Assignment assignment;
  assignment.world = world;
  assignment.node_rank = 1;
  return assignment;
}

inline Verdict failed_verdict(int rank, int code, int signal = 0) {
  Verdict verdict;
  verdict.set_kind(Verdict::RANK_FAILED);
  verdict.set_node("10.0.0.2");
  verdict.mutable_exit()->set_rank(rank);
  verdict.mutable_exit()->set_local_rank(rank % 2);
  verdict.mutable_exit()->set_node_rank(rank / 2);
  verdict.mutable_exit()->set_code(code);
  verdict.mutable_exit()->set_signal(signal);
  verdict.mutable_exit()->set_ran_for_ms(12'345);
  verdict.mutable_exit()->set_log_path("log/workerlog.1");
  verdict.mutable_exit()->set_tail("Traceback:\n  boom");
  return verdict;
}

inline Verdict verdict_of(Verdict::Kind kind, int signal = 0) {
  Verdict verdict;
  verdict.set_kind(kind);
  verdict.set_signal(signal);
  verdict.set_message("node 0 (10.0.0.1) was lost");
  return verdict;
}

struct SupervisionTest : ::testing::Test {
  SupervisionTest() { EXPECT_CALL(effects, record_verdict).Times(::testing::AnyNumber()); }
  void run() { ASSERT_TRUE(supervision.on_assignment(sample_assignment(), logs, start)); }
  ::testing::StrictMock<MockEffects> effects;
  Supervision supervision{effects};
  const Supervision::Time start = Supervision::Time() + std::chrono::seconds(100);
  const std::vector<std::string> logs = {"log/workerlog.0", "log/workerlog.1"};
};

}  // namespace fleet
