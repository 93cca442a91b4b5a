// fleetd's side of conversations, over socket pairs; no job is started.
#include "daemon/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "daemon/protocol.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

// A client, and the fleetd's end of its conversation.
class Client {
 public:
  Client(boost::asio::io_context& loop, NodeJobs& jobs) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_errno("socketpair");
    server_ = std::make_unique<TalkServer>(
        loop, UniqueFd(ends[0]), [this, &loop, &jobs](std::shared_ptr<ServerTalk> talk) {
          conversation_ = std::make_unique<Conversation>(loop, jobs, std::move(talk),
                                                         [this] { conversation_.reset(); });
        });
    talk_ = ClientTalk::start(loop, make_pipe_channel(UniqueFd(ends[1])),
                              {[this](const Tell& tell) {
                                 if (!tell.has_beat()) heard.push_back(tell);
                               },
                               [] {}, [this](const grpc::Status&) { closed = true; }});
  }
  void ask(const std::function<void(Ask*)>& fill) {
    Ask ask;
    fill(&ask);
    talk_->send(std::move(ask));
  }
  void prepare(const std::string& job_id) {
    JobRequest request;
    request.job_id = job_id;
    request.program = {"true"};
    ask([&](Ask* message) { *message->mutable_prepare() = to_wire(request); });
  }
  void hang_up() { talk_->cancel(); }
  bool gone() const { return closed && !conversation_; }

  std::vector<Tell> heard;
  bool closed = false;

 private:
  std::unique_ptr<Conversation> conversation_;
  std::unique_ptr<TalkServer> server_;
  std::shared_ptr<ClientTalk> talk_;
};

struct ConversationTest : ::testing::Test {
  ConversationTest() {
    std::string pattern = ::testing::TempDir() + "fleet_talk.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    ::setenv("FLEET_RUNTIME_DIR", (folder + "/run").c_str(), 1);
    jobs = std::make_unique<NodeJobs>(loop, JobTable("", {}));
  }
  ~ConversationTest() override {
    ::unsetenv("FLEET_RUNTIME_DIR");
    std::filesystem::remove_all(folder);
  }
  // The bound is against hanging.
  void run_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done() && std::chrono::steady_clock::now() < end) {
      loop.run_one_for(std::chrono::seconds(1));
    }
    ASSERT_TRUE(done());
  }

  std::string folder;
  boost::asio::io_context loop{1};
  std::unique_ptr<NodeJobs> jobs;
};

// Between Prepare and Launch somebody has stopped the job, and another one has its name now.
TEST_F(ConversationTest, LaunchOfAJobThatIsGone_ConcernsNoOther) {
  Client first(loop, *jobs);
  first.prepare("a");
  run_until([&] { return first.heard.size() == 1; });
  jobs->stop(jobs->named("a")->number, SIGTERM);
  EXPECT_EQ(jobs->named("a"), nullptr);
  Client second(loop, *jobs);
  second.prepare("a");
  run_until([&] { return second.heard.size() == 1; });
  first.ask([](Ask* ask) { ask->mutable_launch(); });
  first.hang_up();
  run_until([&] { return first.gone(); });
  ASSERT_NE(jobs->named("a"), nullptr);
  EXPECT_EQ(jobs->named("a")->phase, JobPhase::kPrepared);
  second.hang_up();
  run_until([&] { return second.gone(); });
  EXPECT_EQ(jobs->named("a"), nullptr);  // its own client was that one
}

TEST_F(ConversationTest, LaunchOfAJobThatIsGone_IsRefused) {
  const int number = [&] {
    JobRequest request;
    request.job_id = "a";
    request.program = {"true"};
    return jobs->prepare(request);
  }();
  jobs->stop(number, SIGTERM);
  EXPECT_THROW(jobs->launch(number, 0), Error);
}

TEST_F(ConversationTest, FleetdThatEnds_TakesNoMoreJobs) {
  bool over = false;
  jobs->stop_all(SIGTERM, [&] { over = true; });
  EXPECT_TRUE(over);
  Client late(loop, *jobs);
  late.prepare("a");
  run_until([&] { return late.gone(); });
  ASSERT_EQ(late.heard.size(), 1u);
  EXPECT_THAT(late.heard[0].refused().what(), HasSubstr("accepts no more jobs"));
}

TEST_F(ConversationTest, FloodOfMessages_IsRefused) {
  Client client(loop, *jobs);
  client.prepare("a");
  for (int i = 0; i < 2000; ++i) {
    client.ask([](Ask* ask) { ask->mutable_beat(); });
  }
  run_until([&] { return client.gone(); });
  ASSERT_EQ(client.heard.size(), 2u);
  EXPECT_THAT(client.heard[1].refused().what(), HasSubstr("too fast"));
  EXPECT_EQ(jobs->named("a"), nullptr);
}

TEST_F(ConversationTest, Jobs_ComeEachInItsMessage) {
  Client a(loop, *jobs), b(loop, *jobs), asking(loop, *jobs);
  a.prepare("a");
  run_until([&] { return a.heard.size() == 1; });
  b.prepare("b");
  run_until([&] { return b.heard.size() == 1; });
  asking.ask([](Ask* ask) { ask->mutable_query(); });
  run_until([&] { return asking.gone(); });
  std::vector<std::string> names;
  for (const Tell& tell : asking.heard) {
    EXPECT_LE(tell.jobs().jobs_size(), 1);
    for (const std::string& job : tell.jobs().jobs()) {
      names.push_back(read_job_info(job).record.job_id);
    }
  }
  EXPECT_THAT(names, ::testing::ElementsAre("a", "b"));
  a.hang_up(), b.hang_up();
  run_until([&] { return a.gone() && b.gone(); });
}

}  // namespace
}  // namespace fleet
