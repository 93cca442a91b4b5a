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
  MOCK_METHOD(void, report, (const RankExit&), (override));
  MOCK_METHOD(void, report_steps, (const std::vector<RankSteps>&), (override));
  MOCK_METHOD(void, report_stall, (const RankStall&), (override));
  MOCK_METHOD(void, collect_stacks, (), (override));
  MOCK_METHOD(void, send_stacks, (const std::vector<RankStack>&), (override));
  MOCK_METHOD(void, finish_node, (), (override));
  MOCK_METHOD(void, ready, (int), (override));
  MOCK_METHOD(void, report_failure, (const std::string&), (override));
  MOCK_METHOD(void, request_kill, (int), (override));
  MOCK_METHOD(void, request_stop, (int, Grace), (override));
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
  exit.local_rank = local_rank;
  exit.code = code;
  exit.signal = signal;
  exit.tail = tail;
  exit.killed_by_us = killed_by_us;
  return exit;
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
  verdict.kind = VerdictKind::kRankFailed;
  verdict.node = "10.0.0.2";
  verdict.exit.rank = rank;
  verdict.exit.local_rank = rank % 2;
  verdict.exit.node_rank = rank / 2;
  verdict.exit.code = code;
  verdict.exit.signal = signal;
  verdict.exit.ran_for = std::chrono::milliseconds(12'345);
  verdict.exit.log_path = "log/workerlog.1";
  verdict.exit.tail = "Traceback:\n  boom";
  return verdict;
}

inline Verdict verdict_of(VerdictKind kind, int signal = 0) {
  Verdict verdict;
  verdict.kind = kind;
  verdict.signal = signal;
  verdict.message = "node 0 (10.0.0.1) was lost";
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
