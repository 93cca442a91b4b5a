// CPU time of the parameter servers' transports: a process sends messages to another one. gRPC is
// compared with a bare stream of gRPC (blocks of 1 MiB, its defaults, nothing put together), shared
// memory with gRPC.
// Links: ps
//
// bench_ps_transport [MIB [ROUNDS [tls]]]
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ps/connection.h"
#include "tests/bench/times.h"
#include "transport/certificates.h"
#include "transport/grpc_setup.h"

namespace fleet::ps {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kMessage = 8 * kMiB, kBlock = kMiB, kWarmUp = 64 * kMiB;
constexpr std::chrono::minutes kBound{5};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Flag {
 public:
  void set() {
    const MutexLock lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void wait() {
    const MutexLock lock(mutex_);
    while (!set_) {
      if (!changed_.wait_for(mutex_, kBound)) std::_Exit(3);
    }
    set_ = false;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ FLEET_GUARDED_BY(mutex_) = false;
};

// Counts what a server receives, and answers when the warm-up and when everything has arrived.
class Counter {
 public:
  explicit Counter(size_t bytes) : total_(bytes) {}
  // True: answer now.
  bool add(size_t bytes) {
    received_ += bytes;
    if (received_ == kWarmUp) begin_ = cpu_seconds();
    if (received_ == kWarmUp + total_) cpu_ = cpu_seconds() - begin_;
    return received_ == kWarmUp || received_ == kWarmUp + total_;
  }
  double cpu() const { return cpu_; }

 private:
  const size_t total_;
  size_t received_ = 0;
  double begin_ = 0, cpu_ = 0;
};

// Memory to send from: more than a core's cache.
std::span<const std::byte> source(size_t at, size_t bytes) {
  static const std::vector<std::byte> memory(64 * kMiB, std::byte(7));
  return std::span(memory).subspan(at % memory.size(), bytes);
}

struct Setup {
  std::string way;  // "bare", "grpc", "shm"
  size_t bytes = 0;
  Security security = {};
};

// --- ours ---

TransportOptions options_of(const Setup& setup) {
  return {.security = setup.security, .shared_memory = setup.way == "shm"};
}

void serve(const Setup& setup, const std::function<void(std::string)>& listening, double* cpu) {
  struct Handler final : ConnectionHandler {
    explicit Handler(size_t bytes) : counter(bytes) {}
    void received(const std::shared_ptr<Connection>& connection, Message message) override {
      if (counter.add(message.bytes())) connection->send({});
    }
    void closed(const std::shared_ptr<Connection>&, const Error*) override { done.set(); }
    Counter counter;
    Flag done;
  } handler(setup.bytes);
  const auto listener = listen("127.0.0.1:0", handler, options_of(setup));
  listening(listener->address());
  handler.done.wait();
  *cpu = handler.counter.cpu();
}

void send(const Setup& setup, const std::string& address, double* cpu, double* seconds) {
  struct Handler final : ConnectionHandler {
    void received(const std::shared_ptr<Connection>&, Message) override { answered.set(); }
    void closed(const std::shared_ptr<Connection>&, const Error*) override {}
    Flag answered;
  } handler;
  const auto connection = connect(address, handler, options_of(setup), kBound);
  if (connection->transport() != (setup.way == "shm" ? "shm" : "grpc")) std::_Exit(4);
  const auto send_all = [&](size_t bytes) {
    for (size_t at = 0; at < bytes; at += kMessage) {
      connection->send({{}, {{source(at, kMessage), nullptr}}});
      connection->wait_until_unsent(2 * kMessage, kBound);
    }
    handler.answered.wait();
  };
  send_all(kWarmUp);
  const double begin = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  send_all(setup.bytes);
  *cpu = cpu_seconds() - begin;
  *seconds = ms_since(start) / 1000;
  connection->disconnect(kBound);
}

// --- a bare stream ---

constexpr char kMethod[] = "/bare/Stream";

class BareService final : public grpc::CallbackGenericService {
 public:
  explicit BareService(size_t bytes) : counter(bytes) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Stream(*this);
  }
  Counter counter;
  Flag done;

 private:
  class Stream final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Stream(BareService& service) : service_(service) { StartRead(&in_); }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      const bool answer = service_.counter.add(in_.Length());
      in_.Clear();
      if (answer) {
        const grpc::Slice slice("answer");
        out_ = grpc::ByteBuffer(&slice, 1);
        StartWrite(&out_);
      }
      StartRead(&in_);
    }
    void OnDone() override {
      service_.done.set();
      delete this;
    }

   private:
    BareService& service_;
    grpc::ByteBuffer in_, out_;
  };
};

void serve_bare(const Setup& setup, const std::function<void(std::string)>& listening,
                double* cpu) {
  BareService service(setup.bytes);
  set_up_grpc();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", server_credentials(setup.security), &port);
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  listening("127.0.0.1:" + std::to_string(port));
  service.done.wait();
  *cpu = service.counter.cpu();
}

class BareStream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit BareStream(const std::shared_ptr<grpc::Channel>& channel) : stub_(channel) {
    stub_.PrepareBidiStreamingCall(&context_, kMethod, {}, this);
    AddHold();
    StartRead(&in_);
    StartCall();
  }
  void send(size_t bytes) {
    left_ = bytes;
    at_ = 0;
    next();
    answered_.wait();
  }
  void end() {
    StartWritesDone();
    RemoveHold();
    done_.wait();
  }
  void OnWriteDone(bool ok) override {
    if (ok) next();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    answered_.set();
    StartRead(&in_);
  }
  void OnDone(const grpc::Status&) override { done_.set(); }

 private:
  void next() {
    if (left_ == 0) return;
    const auto block = source(at_, kBlock);
    const grpc::Slice slice(const_cast<std::byte*>(block.data()), block.size(),
                            [](void*, size_t) {});
    out_ = grpc::ByteBuffer(&slice, 1);
    at_ += kBlock;
    left_ -= kBlock;
    StartWrite(&out_);
  }
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer in_, out_;
  size_t left_ = 0, at_ = 0;
  Flag answered_, done_;
};

void send_bare(const Setup& setup, const std::string& address, double* cpu, double* seconds) {
  set_up_grpc();
  grpc::ChannelArguments args;
  if (setup.security.tls) args.SetSslTargetNameOverride(kCertificateName);
  BareStream stream(grpc::CreateCustomChannel(address, channel_credentials(setup.security), args));
  stream.send(kWarmUp);
  const double begin = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  stream.send(setup.bytes);
  *cpu = cpu_seconds() - begin;
  *seconds = ms_since(start) / 1000;
  stream.end();
}

// --- processes ---

struct Cost {
  double cpu = 0, seconds = 0;
};

// Both processes begin before gRPC has threads here.
Cost measure(const Setup& setup) {
  struct Result {
    double cpu = 0, seconds = 0;
  };
  int address[2], results[2];
  if (::pipe(address) != 0 || ::pipe(results) != 0) std::exit(1);
  const auto child = [&](const std::function<void(Result*)>& body) {
    if (::fork() != 0) return;
    Result result;
    body(&result);
    std::_Exit(::write(results[1], &result, sizeof result) == sizeof result ? 0 : 1);
  };
  const bool bare = setup.way == "bare";
  child([&](Result* result) {
    const auto listening = [&](const std::string& at) {
      char text[64] = {};
      at.copy(text, sizeof text - 1);
      if (::write(address[1], text, sizeof text) != sizeof text) std::_Exit(1);
    };
    (bare ? serve_bare : serve)(setup, listening, &result->cpu);
  });
  child([&](Result* result) {
    char text[64] = {};
    if (::read(address[0], text, sizeof text) != sizeof text) std::_Exit(1);
    (bare ? send_bare : send)(setup, text, &result->cpu, &result->seconds);
  });
  ::close(results[1]);
  Cost cost;
  Result result;
  int count = 0;
  while (::read(results[0], &result, sizeof result) == sizeof result) {
    cost.cpu += result.cpu;
    cost.seconds = std::max(cost.seconds, result.seconds);
    ++count;
  }
  int status = 0;
  while (::wait(&status) > 0) {
  }
  for (const int fd : {address[0], address[1], results[0]}) ::close(fd);
  if (count != 2) {
    std::fprintf(stderr, "bench_ps_transport: a process of '%s' failed\n", setup.way.c_str());
    std::exit(1);
  }
  return cost;
}

int run(size_t bytes, int rounds, const Security& security) {
  const char* const ways[] = {"bare", "grpc", "shm"};
  std::vector<double> cpu[3], speed[3], grpc_ratios, shm_ratios;  // one of each a round
  for (int round = 0; round < rounds; ++round) {
    for (int way = 0; way < 3; ++way) {
      const Cost cost = measure({ways[way], bytes, security});
      cpu[way].push_back(cost.cpu / static_cast<double>(bytes) * 1e9);
      speed[way].push_back(static_cast<double>(bytes) / cost.seconds * 1e-9);
    }
    grpc_ratios.push_back(cpu[1].back() / cpu[0].back());
    shm_ratios.push_back(cpu[1].back() / cpu[2].back());
  }
  double median_cpu[3];
  for (int way = 0; way < 3; ++way) {
    median_cpu[way] = median(cpu[way]);
    std::printf("%-5s %.3f CPU-s/GB of both processes, %.2f GB/s\n", ways[way], median_cpu[way],
                median(speed[way]));
  }
  std::printf("ps_transport_grpc: ratio %.2f (ours %.3f CPU-s/GB, bare gRPC %.3f CPU-s/GB)\n",
              median(grpc_ratios), median_cpu[1], median_cpu[0]);
  std::printf("ps_transport_shm: ratio %.2f (ours %.2f GB/CPU-s, our gRPC %.2f GB/CPU-s)\n",
              median(shm_ratios), 1 / median_cpu[2], 1 / median_cpu[1]);
  return 0;
}

}  // namespace
}  // namespace fleet::ps

int main(int argc, char** argv) {
  const size_t mib = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1024;
  fleet::Security security;
  if (argc > 3 && std::strcmp(argv[3], "tls") == 0) {
    security = {fleet::new_secret(), true, "bench_ps_transport"};
  }
  return fleet::ps::run(mib / 8 * 8 << 20, argc > 2 ? std::atoi(argv[2]) : 7, security);
}
