// A launcher's Supervision for tests: events go in, and the actions are expected.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "node/control_socket.h"
#include "node/supervision.h"

namespace fleet {

class MockActions {
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
  void carry_out(const wire::NodeMessage& message) {
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
  // Commands to the guardian.
  MOCK_METHOD(void, start_ranks, ());
  MOCK_METHOD(void, collect_stacks, ());
  MOCK_METHOD(void, stop_ranks, (int, Grace));
  MOCK_METHOD(void, kill_ranks, ());
  MOCK_METHOD(void, suspend_ranks, ());
  MOCK_METHOD(void, resume_ranks, ());
  MOCK_METHOD(void, replace_rank, (int local_rank, int ordinal));
  void carry_out(const wire::GuardianCommand& command) {
    if (command.has_spawn()) return start_ranks();
    if (command.has_suspend()) return suspend_ranks();
    if (command.has_resume()) return resume_ranks();
    if (command.has_collect_stacks()) return collect_stacks();
    if (command.has_kill()) return kill_ranks();
    if (command.has_replace()) {
      return replace_rank(command.replace().local_rank(), command.replace().ordinal());
    }
    ASSERT_TRUE(command.has_stop()) << "an unexpected command: " << command.kind_case();
    stop_ranks(command.stop().signal(), std::chrono::milliseconds(command.stop().grace_ms()));
  }
  // The rest.
  MOCK_METHOD(void, record_verdict, (const Verdict&));
  MOCK_METHOD(void, warn, (const std::string&));
  MOCK_METHOD(void, print_verdict, (const std::string&));
  MOCK_METHOD(void, report_error, (const std::string&));
  MOCK_METHOD(void, end, (int));
  MOCK_METHOD(void, suspend_launcher, ());
  void carry_out(const RecordVerdict& record) { record_verdict(record.verdict); }
  void carry_out(const ShowLine& line) {
    if (line.kind == ShowLine::kWarning) return warn(line.text);
    line.kind == ShowLine::kError ? report_error(line.text) : print_verdict(line.text);
  }
  void carry_out(const EndLauncher& launcher) { end(launcher.exit_code); }
  void carry_out(const SuspendLauncher&) { suspend_launcher(); }
};

// Supervision with its events as calls.
class Supervised {
 public:
  using Time = Supervision::Time;

  explicit Supervised(MockActions& actions) : actions_(actions) {}
  void step(SupervisionEvent event, Time now = {}) {
    for (const SupervisionAction& action : supervision_.step(std::move(event), now)) {
      std::visit([this](const auto& one) { actions_.carry_out(one); }, action);
    }
  }
  // Of the host.
  void on_assignment(const Assignment& assignment, const std::vector<std::string>& logs, Time now) {
    wire::SpawnRanks ranks;
    for (const std::string& log : logs) ranks.add_ranks()->set_log_path(log);
    step(GenerationBegins{assignment, ranks}, now);
  }
  void on_refusal(const Error& error) { step(Refusal{error}); }
  void on_host_lost(const HostLost& lost) { step(lost); }
  void on_stop_command(const StopCommand& command, Time now) {
    step(envelope(&wire::HostMessage::mutable_stop, command), now);
  }
  void on_stack_command(const StackCommand& command) {
    step(envelope(&wire::HostMessage::mutable_stacks, command));
  }
  void on_restart_command(const RestartCommand& command) {
    step(envelope(&wire::HostMessage::mutable_restart, command));
  }
  void on_replace_command(const wire::ReplaceCommand& command) {
    step(envelope(&wire::HostMessage::mutable_replace, command));
  }
  void on_verdict(const Verdict& verdict) {
    step(envelope(&wire::HostMessage::mutable_verdict, verdict));
  }
  // Of the guardian.
  void on_rank_not_started(int local_rank, const std::string& error, Time now) {
    wire::RankStarted started;
    started.set_local_rank(local_rank);
    started.set_error(error);
    step(envelope(&wire::GuardianEvent::mutable_started, started), now);
  }
  void on_rank_ended(const RankExit& exit, Time now) {
    step(envelope(&wire::GuardianEvent::mutable_ended, exit), now);
  }
  void on_progress(const StepReport& report) {
    step(envelope(&wire::GuardianEvent::mutable_progress, report));
  }
  void on_rank_stalled(const RankStall& stall) {
    step(envelope(&wire::GuardianEvent::mutable_stalled, stall));
  }
  void on_stacks(const Stacks& stacks, Time now = {}) {
    step(envelope(&wire::GuardianEvent::mutable_stacks, stacks), now);
  }
  void on_all_gone(const std::string& stuck) {
    wire::AllGone gone;
    gone.set_stuck(stuck);
    step(envelope(&wire::GuardianEvent::mutable_all_gone, gone));
  }
  void on_guardian_lost() { step(GuardianLost{}); }
  // Of the user.
  void on_signal(int signal, Time now) { step(stop_request(signal), now); }
  void on_stop(const wire::StopRequest& request, Time now) { step(request, now); }
  void on_starter_lost(Time now) { step(StarterLost{}, now); }

 private:
  MockActions& actions_;
  Supervision supervision_{std::chrono::seconds(10), {}};
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
  world->mutable_id()->set_generation(1);
  for (int node = 0; node < 2; ++node) {
    wire::Node* placed = world->add_nodes();
    for (const int port : {6070, 6071}) add_rank(placed, {}, port);
  }
  number_ranks(world.get());
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
  void run(const Assignment& assignment = sample_assignment()) {
    EXPECT_CALL(effects, start_ranks());
    supervision.on_assignment(assignment, logs, start);
  }
  ::testing::StrictMock<MockActions> effects;
  Supervised supervision{effects};
  const Supervision::Time start = Supervision::Time() + std::chrono::seconds(100);
  const std::vector<std::string> logs = {"log/workerlog.0", "log/workerlog.1"};
};

}  // namespace fleet
