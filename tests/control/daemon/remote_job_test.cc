#include "daemon/remote_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "transport/control_messages.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The job's actions, as words.
struct Actions {
  std::vector<std::string> take() { return std::exchange(did, {}); }
  void carry_out(const ToFleetd& action) {
    const std::string node = std::to_string(action.node);
    const wire::ClientMessage& message = action.message;
    switch (message.kind_case()) {
      case wire::ClientMessage::kLaunch:
        return add("launch " + node + " at " + std::to_string(message.launch().rdzv_port()));
      case wire::ClientMessage::kStop:
        return add((message.stop().kill() ? "kill " : "stop ") + node + " " +
                   std::to_string(message.stop().signal()));
      case wire::ClientMessage::kSignal:
        return add("signal " + node + " " + std::to_string(message.signal().number()));
      case wire::ClientMessage::kDetach:
        return add("detach " + node);
      default:
        ADD_FAILURE() << "an unexpected message: " << message.kind_case();
    }
  }
  void carry_out(const CloseSession& action) {
    add("close session " + std::to_string(action.node));
  }
  void carry_out(const ShowLine& line) {
    (line.kind == ShowLine::kError ? failures : warnings).push_back(line.text);
  }
  void carry_out(const EndClient& end) {
    add("end " + std::to_string(end.exit_code));
    detached = end.detached;
  }
  void add(std::string action) { did.push_back(std::move(action)); }

  std::vector<std::string> did, failures, warnings;
  bool detached = false;
};

// A RemoteJob with its events as calls.
class Job {
 public:
  Job(Actions& actions, std::vector<std::string> names, RemoteJob::Options options)
      : actions_(actions), job_(std::move(names), std::move(options)) {}
  void step(const RemoteJobEvent& event) {
    const RemoteJob::Time before = job_.next_deadline();
    for (const RemoteJobAction& action : job_.step(event, now_)) {
      std::visit([this](const auto& one) { actions_.carry_out(one); }, action);
    }
    const RemoteJob::Time due = job_.next_deadline();
    if (due == before || due == RemoteJob::Time::max()) return;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(due - now_);
    actions_.add("due in " + std::to_string(seconds.count()));
  }
  void on_prepared(int node) { step(from(node, &wire::FleetdMessage::mutable_prepared)); }
  void on_refused(int node, const Error& error) {
    step(from(node, &wire::FleetdMessage::mutable_refused, to_wire(error)));
  }
  void on_hosting(int node, int rdzv_port) {
    wire::Hosting hosting;
    hosting.set_rdzv_port(rdzv_port);
    step(from(node, &wire::FleetdMessage::mutable_hosting, hosting));
  }
  void on_running(int node, int nnodes) {
    wire::Running running;
    running.set_nnodes(nnodes);
    step(from(node, &wire::FleetdMessage::mutable_running, running));
  }
  void on_detached(int node) { step(from(node, &wire::FleetdMessage::mutable_detached)); }
  void on_ended(int node, int code, const std::optional<wire::JobVerdict>& verdict) {
    wire::JobEnded ended;
    ended.set_code(code);
    if (verdict) *ended.mutable_verdict() = *verdict;
    step(from(node, &wire::FleetdMessage::mutable_ended, ended));
  }
  void on_lost(int node, const Error& why) { step(FleetdLost{node, why}); }
  void on_signal(int number) { step(SignalReceived{number}); }
  // The deadline passes, or an hour if there is none.
  void wait() {
    step(TimePassed{});  // too early
    const RemoteJob::Time due = job_.next_deadline();
    now_ = due == RemoteJob::Time::max() ? now_ + std::chrono::hours(1) : due;
    step(TimePassed{});
  }

 private:
  template <typename Message>
  static FromFleetd from(int node, Message* (wire::FleetdMessage::*part)(),
                         std::type_identity_t<Message> message = {}) {
    return {node, envelope(part, std::move(message))};
  }

  Actions& actions_;
  RemoteJob job_;
  RemoteJob::Time now_ = RemoteJob::Time() + std::chrono::seconds(100);
};

struct RemoteJobTest : ::testing::Test {
  static RemoteJob::Options in(RemoteJob::Mode mode) {
    RemoteJob::Options options;
    options.mode = mode;
    return options;
  }
  // Of three nodes, two are enough.
  static RemoteJob::Options elastic() {
    RemoteJob::Options options;
    options.min_nodes = 2;
    options.restarts = true;
    return options;
  }
  static wire::JobVerdict verdict(const std::string& text, int generation = 1,
                                  bool node_lost = false) {
    wire::JobVerdict outcome;
    outcome.set_text(text);
    outcome.mutable_verdict()->set_generation(generation);
    outcome.mutable_verdict()->set_kind(node_lost ? Verdict::NODE_LOST : Verdict::RANK_FAILED);
    return outcome;
  }
  static Error broke() { return {ErrorCode::kPeerLost, "broke"}; }

  void start(Job& which, int nodes = 2) {
    for (int node = 0; node < nodes; ++node) which.on_prepared(node);
    which.on_hosting(0, 7000);
  }
  void run(Job& which, int nodes = 2) {
    start(which, nodes);
    for (int node = 0; node < nodes; ++node) which.on_running(node, nodes);
    actions.take();
  }

  Actions actions;
  Job job{actions, {"a", "b"}, in(RemoteJob::Mode::kStart)};
};

TEST_F(RemoteJobTest, Nodes_AreLaunchedOnceAllHaveAPlace) {
  job.on_prepared(1);
  EXPECT_THAT(actions.take(), IsEmpty());
  job.on_prepared(0);
  EXPECT_THAT(actions.take(), ElementsAre("launch 0 at 0"));
  job.on_hosting(0, 7000);
  EXPECT_THAT(actions.take(), ElementsAre("launch 1 at 7000"));
  job.on_ended(0, 0, verdict(""));
  job.on_ended(1, 0, verdict(""));
  EXPECT_THAT(actions.take(), ElementsAre("due in 15", "end 0"));
}

TEST_F(RemoteJobTest, RefusedNode_NothingStarts) {
  job.on_prepared(0);
  job.on_refused(1, Error(ErrorCode::kUsage, "no GPUs are free"));
  EXPECT_THAT(actions.take(), ElementsAre("close session 0", "end 2"));
  EXPECT_THAT(actions.failures, ElementsAre(HasSubstr("b: no GPUs are free")));
}

TEST_F(RemoteJobTest, RefusalBeforeTheOthersAnswer_HangsUpAsTheyDo) {
  job.on_refused(1, Error(ErrorCode::kUsage, "no"));
  EXPECT_THAT(actions.take(), IsEmpty());
  job.on_prepared(0);
  EXPECT_THAT(actions.take(), ElementsAre("close session 0", "end 2"));
}

TEST_F(RemoteJobTest, UnreachableNode_EndsWith112) {
  job.on_prepared(0);
  job.on_lost(1, Error(ErrorCode::kPeerLost, "cannot be reached"));
  EXPECT_THAT(actions.take(), ElementsAre("close session 0", "end 112"));
}

TEST_F(RemoteJobTest, SilentNode_IsNamedAndEndsTheStart) {
  RemoteJob::Options options;
  options.start_timeout = std::chrono::seconds(60);
  Job silent(actions, {"a", "b"}, options);
  silent.step(RequestsSent{});
  silent.on_prepared(0);
  silent.wait();
  EXPECT_THAT(actions.take(), ElementsAre("due in 10", "due in 50"));
  EXPECT_THAT(actions.warnings, ElementsAre(HasSubstr("fleetd on b")));
  EXPECT_THAT(actions.failures, IsEmpty());
  silent.wait();
  EXPECT_THAT(actions.take(), ElementsAre("close session 1", "close session 0", "end 112"));
  EXPECT_THAT(actions.failures, ElementsAre(HasSubstr("within 60 s")));
}

TEST_F(RemoteJobTest, SilentNodeThatIsNotNeeded_TheJobStartsWithoutIt) {
  RemoteJob::Options options = elastic();
  options.start_timeout = std::chrono::seconds(5);
  Job silent(actions, {"a", "b", "c"}, options);
  silent.step(RequestsSent{});
  silent.on_prepared(0);
  silent.on_prepared(2);
  EXPECT_THAT(actions.take(), ElementsAre("due in 5"));
  silent.wait();
  EXPECT_THAT(actions.take(), ElementsAre("close session 1", "launch 0 at 0"));
  silent.on_prepared(1);  // too late
  EXPECT_THAT(actions.take(), IsEmpty());
}

TEST_F(RemoteJobTest, SilentNodeAfterARefusal_TheClientEnds) {
  RemoteJob::Options options;
  options.start_timeout = std::chrono::seconds(5);
  Job silent(actions, {"a", "b"}, options);
  silent.step(RequestsSent{});
  silent.on_refused(0, Error(ErrorCode::kUsage, "no GPUs are free"));
  EXPECT_THAT(actions.take(), ElementsAre("due in 5"));
  silent.wait();
  EXPECT_THAT(actions.take(), ElementsAre("close session 1", "end 2"));
}

TEST_F(RemoteJobTest, NodesThatAnswer_AreNotWaitedFor) {
  RemoteJob::Options options;
  options.start_timeout = std::chrono::seconds(60);
  Job prompt(actions, {"a", "b"}, options);
  prompt.step(RequestsSent{});
  start(prompt);
  prompt.wait();
  EXPECT_THAT(actions.take(), ElementsAre("due in 10", "launch 0 at 0", "launch 1 at 7000"));
  EXPECT_THAT(actions.warnings, IsEmpty());
}

TEST_F(RemoteJobTest, SecondLaunchRefused_TheFirstIsStopped) {
  job.on_prepared(0);
  job.on_prepared(1);
  job.on_hosting(0, 7000);
  actions.take();
  job.on_refused(1, Error(ErrorCode::kUsage, "no such folder"));
  EXPECT_THAT(actions.take(), ElementsAre("stop 0 15"));
  job.on_ended(0, 143, std::nullopt);
  EXPECT_THAT(actions.take(), ElementsAre("end 2"));
}

TEST_F(RemoteJobTest, Verdict_IsShownOnceAndDecides) {
  run(job);
  job.on_ended(1, 5, verdict("ABORT!!!"));
  job.on_ended(0, 5, verdict("ABORT!!!"));
  EXPECT_THAT(actions.take(), ElementsAre("due in 15", "end 5"));
  EXPECT_THAT(actions.failures, ElementsAre("ABORT!!!"));
}

// This console shows the output of the ranks, unless the client came later.
TEST_F(RemoteJobTest, VerdictOfAShownRank_RepeatsNoLines) {
  wire::JobVerdict shown = verdict("rank 0\nits lines");
  shown.set_unseen_text("rank 0");
  for (const auto mode : {RemoteJob::Mode::kStart, RemoteJob::Mode::kAttach}) {
    for (const bool here : {true, false}) {
      RemoteJob::Options options = in(mode);
      options.shows_output = here;
      Job one(actions, {"a"}, options);
      if (mode == RemoteJob::Mode::kStart) run(one, 1);
      one.on_ended(0, 5, shown);
      const bool brief = here && mode == RemoteJob::Mode::kStart;
      EXPECT_EQ(actions.failures.back(), brief ? "rank 0" : "rank 0\nits lines");
    }
  }
}

TEST_F(RemoteJobTest, KilledLauncher_TheOthersVerdictDecides) {
  run(job);
  job.on_ended(1, 137, std::nullopt);
  job.wait();
  EXPECT_THAT(actions.take(), IsEmpty());
  job.on_ended(0, 113, verdict("node 1 was lost", 1, true));
  EXPECT_EQ(actions.take().back(), "end 113");
  EXPECT_THAT(actions.failures,
              ElementsAre(HasSubstr("b was killed by SIGKILL"), "node 1 was lost"));
}

TEST_F(RemoteJobTest, LostFleetd_TheOthersJudge) {
  run(job);
  job.on_lost(0, broke());
  EXPECT_THAT(actions.take(), IsEmpty());
  job.on_ended(1, 113, verdict("node 0 was lost", 1, true));
  EXPECT_EQ(actions.take().back(), "end 113");
}

TEST_F(RemoteJobTest, FleetdLostBeforeTheyHaveMet_TheOthersAreStopped) {
  for (const bool running : {false, true}) {
    Job one(actions, {"a", "b"}, in(RemoteJob::Mode::kStart));
    start(one);
    actions.take();
    one.on_lost(1, broke());
    EXPECT_THAT(actions.take(), ElementsAre("due in 2"));
    if (running) one.on_running(0, 2);  // they had met: the launchers know
    one.wait();
    if (!running) {
      EXPECT_THAT(actions.take(), ElementsAre("stop 0 15"));
    }
    one.on_ended(0, running ? 113 : 143, verdict("", 1, running));
    EXPECT_EQ(actions.take(), std::vector<std::string>{"end 113"});
  }
}

TEST_F(RemoteJobTest, WhoDoesNotHearTheVerdict_IsStopped) {
  RemoteJob::Options options;
  options.grace = std::chrono::seconds(10);
  Job frozen(actions, {"a", "b", "c"}, options);
  run(frozen, 3);
  frozen.on_ended(0, 113, verdict("node 2 was lost", 1, true));
  frozen.on_ended(1, 113, verdict("node 2 was lost", 1, true));
  EXPECT_THAT(actions.take(), ElementsAre("due in 25"));
  frozen.wait();
  EXPECT_THAT(actions.take(), ElementsAre("stop 2 15"));
  frozen.on_ended(2, 143, std::nullopt);
  EXPECT_THAT(actions.take(), ElementsAre("end 113"));
}

TEST_F(RemoteJobTest, UsageErrorOfOne_StopsTheOthers) {
  job.on_prepared(0);
  job.on_prepared(1);
  job.on_hosting(0, 7000);
  actions.take();
  job.on_ended(1, 2, std::nullopt);
  EXPECT_THAT(actions.take(), ElementsAre("stop 0 15"));
  job.on_ended(0, 143, std::nullopt);
  EXPECT_THAT(actions.take(), ElementsAre("end 2"));
}

TEST_F(RemoteJobTest, Signals_ArePassedOn) {
  run(job);
  job.on_signal(SIGUSR1);
  EXPECT_THAT(actions.take(), ElementsAre("signal 0 10"));  // which reaches the whole job
  job.on_signal(SIGINT);
  EXPECT_THAT(actions.take(), ElementsAre("stop 0 2", "stop 1 2"));
  job.on_signal(SIGINT);
  EXPECT_THAT(actions.take(), ElementsAre("kill 0 2", "kill 1 2"));
  job.on_signal(SIGINT);
  EXPECT_THAT(actions.take(), ElementsAre("close session 0", "close session 1", "end 130"));
}

TEST_F(RemoteJobTest, StopOfAJobThatIsBeingStopped_Kills) {
  start(job);
  actions.take();
  job.on_ended(1, 2, std::nullopt);
  EXPECT_THAT(actions.take(), ElementsAre("stop 0 15"));
  job.on_signal(SIGTERM);
  EXPECT_THAT(actions.take(), ElementsAre("kill 0 15"));
}

TEST_F(RemoteJobTest, KilledJob_IsNotANodeLost) {
  run(job);
  job.on_signal(SIGINT);
  job.on_signal(SIGINT);
  actions.take();
  job.on_ended(0, 130, std::nullopt);
  job.on_ended(1, 113, verdict("node 0 was lost", 1, true));
  EXPECT_EQ(actions.take().back(), "end 130");
  EXPECT_THAT(actions.failures, IsEmpty());
}

TEST_F(RemoteJobTest, SignalBeforeTheStart_LeavesNothing) {
  job.on_prepared(0);
  job.on_signal(SIGTERM);
  EXPECT_THAT(actions.take(), ElementsAre("close session 0", "close session 1", "end 143"));
}

TEST_F(RemoteJobTest, Detaching_WaitsForAllRanks) {
  Job away(actions, {"a", "b"}, in(RemoteJob::Mode::kDetach));
  start(away);
  away.on_running(0, 2);
  actions.take();
  away.on_running(1, 2);
  EXPECT_THAT(actions.take(), ElementsAre("detach 0", "detach 1"));
  away.on_detached(0);
  EXPECT_FALSE(actions.detached);
  away.on_detached(1);
  EXPECT_THAT(actions.take(), ElementsAre("end 0"));
  EXPECT_TRUE(actions.detached);
}

TEST_F(RemoteJobTest, JobThatFailsBeforeItIsLeft_IsNotLeft) {
  Job away(actions, {"a", "b"}, in(RemoteJob::Mode::kDetach));
  away.on_prepared(0);
  away.on_prepared(1);
  away.on_hosting(0, 7000);
  away.on_ended(0, 5, verdict("ABORT!!!"));
  away.on_ended(1, 5, verdict("ABORT!!!"));
  EXPECT_EQ(actions.take().back(), "end 5");
  EXPECT_FALSE(actions.detached);
}

TEST_F(RemoteJobTest, AttachedClient_StopsNothingByItself) {
  Job attached(actions, {"a", "b"}, in(RemoteJob::Mode::kAttach));
  attached.on_lost(1, broke());
  attached.wait();
  EXPECT_THAT(actions.take(), IsEmpty());
  attached.on_ended(0, 5, verdict("ABORT!!!"));
  EXPECT_THAT(actions.take(), ElementsAre("end 5"));
  Job told(actions, {"a"}, in(RemoteJob::Mode::kAttach));
  told.on_signal(SIGTERM);
  EXPECT_THAT(actions.take(), ElementsAre("stop 0 15"));
}

TEST_F(RemoteJobTest, DetachedClient_LeavesTheJobAsItIs) {
  Job attached(actions, {"a", "b"}, in(RemoteJob::Mode::kAttach));
  attached.on_lost(0, broke());
  attached.step(DetachRequested{});
  EXPECT_THAT(actions.take(), ElementsAre("close session 1", "end 0"));
  EXPECT_TRUE(actions.detached);
  // The terminal of a client that attached is not the job's.
  Job hung_up(actions, {"a"}, in(RemoteJob::Mode::kAttach));
  hung_up.on_signal(SIGHUP);
  EXPECT_THAT(actions.take(), ElementsAre("close session 0", "end 129"));
  Job owner(actions, {"a", "b"}, in(RemoteJob::Mode::kStart));
  run(owner);
  owner.on_signal(SIGHUP);
  EXPECT_THAT(actions.take(), ElementsAre("stop 0 1", "stop 1 1"));
}

TEST_F(RemoteJobTest, UserSignals_GoToANodeThatIsThere) {
  Job three(actions, {"a", "b", "c"}, elastic());
  run(three, 3);
  three.on_lost(0, broke());
  three.on_signal(SIGUSR2);
  EXPECT_THAT(actions.take(), ElementsAre("signal 1 12"));
}

TEST_F(RemoteJobTest, ElasticJob_GoesOnWithoutANode) {
  Job three(actions, {"a", "b", "c"}, elastic());
  run(three, 3);
  three.on_lost(0, broke());             // its rendezvous too: the next node hosts it
  three.on_ended(1, 137, std::nullopt);  // and one more
  three.on_running(2, 1);
  three.wait();
  EXPECT_THAT(actions.take(), IsEmpty());
  three.on_ended(2, 0, verdict("", 3));
  EXPECT_THAT(actions.take(), ElementsAre("end 0"));
}

TEST_F(RemoteJobTest, PartThatFellOff_HasNotTheLastWord) {
  Job three(actions, {"a", "b", "c"}, elastic());
  run(three, 3);
  three.on_ended(0, 113, verdict("node 1 was lost; no majority", 1, true));
  EXPECT_THAT(actions.take(), IsEmpty());  // the others may run for days
  three.on_ended(1, 7, verdict("ABORT!!!", 2));
  three.on_ended(2, 7, verdict("ABORT!!!", 2));
  EXPECT_EQ(actions.take().back(), "end 7");
  EXPECT_THAT(actions.failures, ElementsAre("ABORT!!!"));
}

TEST_F(RemoteJobTest, ElasticJob_StartsWithoutAnUnreachableNode) {
  Job three(actions, {"a", "b", "c"}, elastic());
  three.on_prepared(0);
  three.on_lost(2, broke());
  EXPECT_THAT(actions.take(), IsEmpty());
  three.on_prepared(1);
  EXPECT_THAT(actions.take(), ElementsAre("launch 0 at 0"));
  three.on_hosting(0, 7000);
  EXPECT_THAT(actions.take(), ElementsAre("launch 1 at 7000"));
  // The first one is where they meet; a refusal is a mistake; one is too few.
  Job headless(actions, {"a", "b", "c"}, elastic());
  headless.on_lost(0, broke());
  headless.on_prepared(1);
  headless.on_prepared(2);
  EXPECT_THAT(actions.take(), ElementsAre("close session 1", "close session 2", "end 112"));
  Job refused(actions, {"a", "b", "c"}, elastic());
  refused.on_refused(2, Error(ErrorCode::kUsage, "no"));
  refused.on_prepared(0);
  EXPECT_THAT(actions.take(), ElementsAre("close session 0"));
  Job few(actions, {"a", "b", "c"}, elastic());
  few.on_lost(1, broke());
  few.on_lost(2, broke());
  few.on_prepared(0);
  EXPECT_THAT(actions.take(), ElementsAre("close session 0", "end 112"));
}

TEST_F(RemoteJobTest, SpareNode_DoesNotKeepTheClient) {
  RemoteJob::Options options = elastic();
  options.mode = RemoteJob::Mode::kDetach;
  Job away(actions, {"a", "b", "c"}, options);
  start(away, 3);
  away.on_running(0, 2);
  actions.take();
  away.on_running(1, 2);
  EXPECT_THAT(actions.take(), ElementsAre("detach 0", "detach 1", "detach 2"));
  for (int node = 0; node < 3; ++node) away.on_detached(node);
  EXPECT_THAT(actions.take(), ElementsAre("end 0"));
}

TEST_F(RemoteJobTest, NodeLostOnLeaving_IsNoSuccess) {
  Job away(actions, {"a", "b"}, in(RemoteJob::Mode::kDetach));
  run(away);
  away.on_detached(0);
  away.on_lost(1, broke());
  EXPECT_EQ(actions.take().back(), "end 113");
}

}  // namespace
}  // namespace fleet
