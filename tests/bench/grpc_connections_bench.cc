// The bound of a rendezvous of many nodes: gRPC alone. As many connections, from other processes, a
// stream on each, one small message each way. Prints the seconds from the first connection to the
// last answer.
// Links: rendezvous
//
// bench_grpc_connections CONNECTIONS [PROCESSES [tls]]
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "proto/control.grpc.pb.h"
#include "transport/certificates.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

namespace wire = control::v1;

// Answers every message.
class Echo final : public wire::Rendezvous::CallbackService {
  class Stream final : public grpc::ServerBidiReactor<wire::NodeMessage, wire::HostMessage> {
   public:
    Stream() { StartRead(&in_); }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      *out_.mutable_heartbeat() = in_.heartbeat();
      StartWrite(&out_);
    }
    void OnWriteDone(bool ok) override {
      if (ok) StartRead(&in_);
    }
    void OnDone() override { delete this; }

   private:
    wire::NodeMessage in_;
    wire::HostMessage out_;
  };
  grpc::ServerBidiReactor<wire::NodeMessage, wire::HostMessage>* Session(
      grpc::CallbackServerContext*) override {
    return new Stream;
  }
};

class Connection final : public grpc::ClientBidiReactor<wire::NodeMessage, wire::HostMessage> {
 public:
  Connection(const std::string& address, const Security& security,
             std::function<void(bool)> answered)
      : answered_(std::move(answered)) {
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
    if (security.tls) args.SetSslTargetNameOverride(kCertificateName);
    stub_ = wire::Rendezvous::NewStub(
        grpc::CreateCustomChannel(address, channel_credentials(security), args));
    context_.set_wait_for_ready(true);  // a full queue is tried again
    stub_->async()->Session(&context_, this);
    out_.mutable_heartbeat()->set_count(1);
    StartWrite(&out_);
    StartRead(&in_);
    StartCall();
  }
  void OnReadDone(bool ok) override { answered_(ok); }
  void OnDone(const grpc::Status&) override {}

 private:
  std::function<void(bool)> answered_;
  std::unique_ptr<wire::Rendezvous::Stub> stub_;
  grpc::ClientContext context_;
  wire::NodeMessage out_;
  wire::HostMessage in_;
};

// A process with its share of the connections: begins when it reads the port, says when all are
// answered, lives until the end of its input.
[[noreturn]] void connect_all(int count, const Security& security, int from, int to) {
  int port = 0;
  if (read(from, &port, sizeof port) != sizeof port) _exit(1);
  std::mutex mutex;
  std::condition_variable changed;
  int answered = 0;
  std::vector<Connection*> connections;
  for (int i = 0; i < count; ++i) {
    connections.push_back(
        new Connection("127.0.0.1:" + std::to_string(port), security, [&](bool ok) {
          if (!ok) _exit(1);
          std::lock_guard lock(mutex);
          if (++answered == count) changed.notify_one();
        }));
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return answered == count; });
  char done = 1;
  if (write(to, &done, 1) != 1 || read(from, &done, 1) != 0) _exit(1);
  _exit(0);
}

int run(int connections, int processes, const Security& security) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  int ports[2], answers[2];
  if (pipe(ports) != 0 || pipe(answers) != 0) return 1;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {  // before gRPC has threads
    const int count = connections / processes + (i < connections % processes ? 1 : 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ports[1]);
      connect_all(count, security, ports[0], answers[1]);
    }
    children.push_back(child);
  }
  close(answers[1]);
  Echo service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", server_credentials(security), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < processes; ++i) {
    if (write(ports[1], &port, sizeof port) != sizeof port) return 1;
  }
  char done = 0;
  for (int i = 0; i < processes; ++i) {
    if (read(answers[0], &done, 1) != 1) {
      std::fprintf(stderr, "bench_grpc_connections: a connection failed\n");
      return 1;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.4f\n", took.count());
  std::fflush(stdout);
  close(ports[1]);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  _exit(0);
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  // As in our own processes: Debian's Abseil looks for deadlocks, at a tenth of gRPC's time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  fleet::Security security;
  if (argc > 3 && std::string(argv[3]) == "tls") {
    security = {fleet::new_secret(), true, "bench_grpc_connections"};
  }
  return fleet::run(argc > 1 ? std::atoi(argv[1]) : 1250, argc > 2 ? std::atoi(argv[2]) : 4,
                    security);
}
