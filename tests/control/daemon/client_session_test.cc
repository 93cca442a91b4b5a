// fleetd's side of sessions, over socket pairs; no job is started.
#include "daemon/client_session.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>

#include "base/file.h"
#include "daemon/protocol.h"
#include "node/control_socket.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

JobRequest request_of(const std::string& job_id) {
  JobRequest request;
  request.set_job_id(job_id);
  request.add_program("true");
  return request;
}

// A client, and the fleetd's end of its session.
class Client {
 public:
  Client(EventLoop& loop, NodeJobs& jobs) : loop_(loop) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_errno("socketpair");
    server_ = std::make_unique<StreamServer>(
        loop, UniqueFd(ends[0]), [this, &loop, &jobs](std::shared_ptr<ServerStream> stream) {
          session_ = std::make_unique<ClientSession>(loop, jobs, std::move(stream),
                                                     [this] { session_.reset(); });
        });
    channel_ = make_channel_from_fd(UniqueFd(ends[1]));
  }
  void send(const std::function<void(wire::ClientMessage*)>& fill) {
    wire::ClientMessage message;
    fill(&message);
    if (stream_) return stream_->send(std::move(message));
    stream_ = ClientStream::start(loop_, channel_, std::move(message),
                                  {[this](const wire::FleetdMessage& event) {
                                     if (!event.has_heartbeat()) events.push_back(event);
                                   },
                                   [] {}, [this](const grpc::Status&) { closed = true; }});
  }
  void prepare(const std::string& job_id) {
    send([&](wire::ClientMessage* message) { *message->mutable_prepare() = request_of(job_id); });
  }
  // Calls a method that may not exist, without messages.
  grpc::Status call(const std::string& method) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    const grpc::Slice nothing("");
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer response;
    std::promise<grpc::Status> ended;
    stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                   [&](grpc::Status status) { ended.set_value(std::move(status)); });
    return ended.get_future().get();
  }
  // Sends this message as it is; returns what fleetd sends first. Blocks.
  wire::FleetdMessage reply_to(const wire::ClientMessage& message) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    const auto stream = wire::Fleetd::NewStub(channel_)->Session(&context);
    wire::FleetdMessage reply;
    stream->Write(message);
    stream->Read(&reply);
    return reply;
  }
  void disconnect() { stream_->cancel(); }
  bool gone() const { return closed && !session_; }

  std::vector<wire::FleetdMessage> events;
  bool closed = false;

 private:
  EventLoop& loop_;
  std::shared_ptr<grpc::Channel> channel_;
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
  EventLoop loop;
  std::unique_ptr<NodeJobs> jobs;
};

// Between Prepare and Launch the job was stopped, and another job has its name now.
TEST_F(ClientSessionTest, LaunchOfAJobThatIsGone_ConcernsNoOther) {
  Client first(loop, *jobs);
  first.prepare("a");
  run_until([&] { return first.events.size() == 1; });
  jobs->stop(jobs->find_by_job_id("a")->number(), stop_request(SIGTERM));
  EXPECT_EQ(jobs->find_by_job_id("a"), nullptr);
  Client second(loop, *jobs);
  second.prepare("a");
  run_until([&] { return second.events.size() == 1; });
  first.send([](wire::ClientMessage* message) { message->mutable_launch(); });
  first.disconnect();
  run_until([&] { return first.gone(); });
  ASSERT_NE(jobs->find_by_job_id("a"), nullptr);
  EXPECT_EQ(jobs->find_by_job_id("a")->phase(), JobInfo::PREPARED);
  second.disconnect();
  run_until([&] { return second.gone(); });
  EXPECT_EQ(jobs->find_by_job_id("a"), nullptr);  // its own client was that one
}

TEST_F(ClientSessionTest, LaunchOfAJobThatIsGone_IsRefused) {
  const int number = jobs->prepare(request_of("a"));
  jobs->stop(number, stop_request(SIGTERM));
  EXPECT_THROW(jobs->launch(number, 0), Error);
}

TEST_F(ClientSessionTest, FleetdThatEnds_TakesNoMoreJobs) {
  bool over = false;
  jobs->stop_all(stop_request(SIGTERM), [&] { over = true; });
  EXPECT_TRUE(over);
  Client late(loop, *jobs);
  late.prepare("a");
  run_until([&] { return late.gone(); });
  ASSERT_EQ(late.events.size(), 1u);
  EXPECT_TRUE(late.events[0].has_refused());
}

TEST_F(ClientSessionTest, FloodOfMessages_IsRefused) {
  Client client(loop, *jobs);
  client.prepare("a");
  for (int i = 0; i < 2000; ++i) {
    client.send([](wire::ClientMessage* message) { message->mutable_heartbeat(); });
  }
  run_until([&] { return client.gone(); });
  ASSERT_EQ(client.events.size(), 2u);
  EXPECT_TRUE(client.events[1].has_refused());
  EXPECT_EQ(jobs->find_by_job_id("a"), nullptr);
}

TEST_F(ClientSessionTest, Jobs_ComeEachInItsMessage) {
  Client a(loop, *jobs), b(loop, *jobs), asking(loop, *jobs);
  a.prepare("a");
  run_until([&] { return a.events.size() == 1; });
  b.prepare("b");
  run_until([&] { return b.events.size() == 1; });
  asking.send([](wire::ClientMessage* message) { message->mutable_query(); });
  run_until([&] { return asking.gone(); });
  std::vector<std::string> names;
  for (const wire::FleetdMessage& event : asking.events) {
    EXPECT_LE(event.jobs().jobs_size(), 1);
    for (const JobInfo& job : event.jobs().jobs()) names.push_back(job.record().job_id());
  }
  EXPECT_THAT(names, ::testing::ElementsAre("a", "b"));
  a.disconnect(), b.disconnect();
  run_until([&] { return a.gone() && b.gone(); });
}

TEST_F(ClientSessionTest, ClientOfAnotherVersion_IsRefusedForEveryRequest) {
  Client client(loop, *jobs);
  wire::ClientMessage first;
  first.mutable_query();
  first.set_protocol(kFleetdProtocol - 1);
  first.set_version("0.1");
  auto reply = std::async(std::launch::async, [&] { return client.reply_to(first); });
  run_until([&] { return reply.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  const Error error = from_wire(reply.get().refused());
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("fleetrun 0.1"));
}

// Up to kFleetdProtocol 3 the service had another name; neither end knows that of the other.
TEST_F(ClientSessionTest, ServiceOfAnOlderVersion_IsNamedAsSuch) {
  Client client(loop, *jobs);
  const grpc::Status status = client.call("/fleet.daemon.v1.Fleetd/Session");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  const Error error = error_of(status, "n1:6767", {});
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_EQ(error.where(), "n1:6767");
}

TEST_F(ClientSessionTest, StopOfTheSessionsJob_EndsIt) {
  Client client(loop, *jobs);
  client.prepare("a");
  run_until([&] { return client.events.size() == 1; });
  client.send(
      [](wire::ClientMessage* message) { *message->mutable_stop() = stop_request(SIGINT); });
  run_until([&] { return client.gone(); });
  EXPECT_EQ(client.events.size(), 1u);
  EXPECT_EQ(jobs->find_by_job_id("a"), nullptr);
}

// A launcher would not take the message.
TEST_F(ClientSessionTest, StopWithImpossibleValues_IsRefused) {
  for (const wire::StopRequest& how : {stop_request(SIGUSR1), stop_request(1000),
                                       stop_request(SIGTERM, false, std::chrono::seconds(-1))}) {
    Client client(loop, *jobs);
    client.prepare("a");
    run_until([&] { return client.events.size() == 1; });
    client.send([&](wire::ClientMessage* message) { *message->mutable_stop() = how; });
    run_until([&] { return client.gone(); });
    ASSERT_EQ(client.events.size(), 2u);
    EXPECT_EQ(client.events[1].refused().code(), wire::Failure::USAGE);
  }
}

TEST_F(ClientSessionTest, MessageOutOfPlace_IsRefused) {
  Client client(loop, *jobs);
  client.send([](wire::ClientMessage* message) { message->mutable_launch(); });
  run_until([&] { return client.gone(); });
  ASSERT_EQ(client.events.size(), 1u);
  EXPECT_EQ(client.events[0].refused().code(), wire::Failure::USAGE);
}

}  // namespace
}  // namespace fleet
