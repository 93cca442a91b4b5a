// fleetd's side of sessions, over socket pairs; no job is started.
#include "daemon/client_session.h"

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
#include "node/control_socket.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

// A client, and the fleetd's end of its session.
class Client {
 public:
  Client(boost::asio::io_context& loop, NodeJobs& jobs) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_errno("socketpair");
    server_ = std::make_unique<StreamServer>(
        loop, UniqueFd(ends[0]), [this, &loop, &jobs](std::shared_ptr<ServerStream> stream) {
          session_ = std::make_unique<ClientSession>(loop, jobs, std::move(stream),
                                                     [this] { session_.reset(); });
        });
    stream_ = ClientStream::start(loop, make_channel_from_fd(UniqueFd(ends[1])),
                                  {[this](const Event& event) {
                                     if (!event.has_heartbeat()) events.push_back(event);
                                   },
                                   [] {}, [this](const grpc::Status&) { closed = true; }});
  }
  void send(const std::function<void(Request*)>& fill) {
    Request request;
    fill(&request);
    stream_->send(std::move(request));
  }
  void prepare(const std::string& job_id) {
    JobRequest request;
    request.job_id = job_id;
    request.program = {"true"};
    send([&](Request* message) { *message->mutable_prepare() = to_wire(request); });
  }
  void disconnect() { stream_->cancel(); }
  bool gone() const { return closed && !session_; }

  std::vector<Event> events;
  bool closed = false;

 private:
  std::unique_ptr<ClientSession> session_;
  std::unique_ptr<StreamServer> server_;
  std::shared_ptr<ClientStream> stream_;
};

struct ClientSessionTest : ::testing::Test {
  ClientSessionTest() {
    std::string pattern = ::testing::TempDir() + "fleet_session.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    ::setenv("FLEET_RUNTIME_DIR", (folder + "/run").c_str(), 1);
    jobs = std::make_unique<NodeJobs>(loop, JobTable("", {}));
  }
  ~ClientSessionTest() override {
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
TEST_F(ClientSessionTest, LaunchOfAJobThatIsGone_ConcernsNoOther) {
  Client first(loop, *jobs);
  first.prepare("a");
  run_until([&] { return first.events.size() == 1; });
  jobs->stop(jobs->find_by_job_id("a")->number, stop_job(SIGTERM));
  EXPECT_EQ(jobs->find_by_job_id("a"), nullptr);
  Client second(loop, *jobs);
  second.prepare("a");
  run_until([&] { return second.events.size() == 1; });
  first.send([](Request* request) { request->mutable_launch(); });
  first.disconnect();
  run_until([&] { return first.gone(); });
  ASSERT_NE(jobs->find_by_job_id("a"), nullptr);
  EXPECT_EQ(jobs->find_by_job_id("a")->phase, JobPhase::kPrepared);
  second.disconnect();
  run_until([&] { return second.gone(); });
  EXPECT_EQ(jobs->find_by_job_id("a"), nullptr);  // its own client was that one
}

TEST_F(ClientSessionTest, LaunchOfAJobThatIsGone_IsRefused) {
  const int number = [&] {
    JobRequest request;
    request.job_id = "a";
    request.program = {"true"};
    return jobs->prepare(request);
  }();
  jobs->stop(number, stop_job(SIGTERM));
  EXPECT_THROW(jobs->launch(number, 0), Error);
}

TEST_F(ClientSessionTest, FleetdThatEnds_TakesNoMoreJobs) {
  bool over = false;
  jobs->stop_all(stop_job(SIGTERM), [&] { over = true; });
  EXPECT_TRUE(over);
  Client late(loop, *jobs);
  late.prepare("a");
  run_until([&] { return late.gone(); });
  ASSERT_EQ(late.events.size(), 1u);
  EXPECT_THAT(late.events[0].refused().what(), HasSubstr("accepts no more jobs"));
}

TEST_F(ClientSessionTest, FloodOfMessages_IsRefused) {
  Client client(loop, *jobs);
  client.prepare("a");
  for (int i = 0; i < 2000; ++i) {
    client.send([](Request* request) { request->mutable_heartbeat(); });
  }
  run_until([&] { return client.gone(); });
  ASSERT_EQ(client.events.size(), 2u);
  EXPECT_THAT(client.events[1].refused().what(), HasSubstr("too fast"));
  EXPECT_EQ(jobs->find_by_job_id("a"), nullptr);
}

TEST_F(ClientSessionTest, Jobs_ComeEachInItsMessage) {
  Client a(loop, *jobs), b(loop, *jobs), asking(loop, *jobs);
  a.prepare("a");
  run_until([&] { return a.events.size() == 1; });
  b.prepare("b");
  run_until([&] { return b.events.size() == 1; });
  asking.send([](Request* request) { request->mutable_query(); });
  run_until([&] { return asking.gone(); });
  std::vector<std::string> names;
  for (const Event& event : asking.events) {
    EXPECT_LE(event.jobs().jobs_size(), 1);
    for (const std::string& job : event.jobs().jobs()) {
      names.push_back(read_job_info(job).record.job_id);
    }
  }
  EXPECT_THAT(names, ::testing::ElementsAre("a", "b"));
  a.disconnect(), b.disconnect();
  run_until([&] { return a.gone() && b.gone(); });
}

}  // namespace
}  // namespace fleet
