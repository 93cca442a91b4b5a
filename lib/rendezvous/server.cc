#include "rendezvous/server.h"

#include <string.h>
#include <sys/resource.h>

#include <mutex>

#include "base/log.h"
#include "base/terminal_text.h"
#include "rendezvous/beats.h"
#include "rendezvous/datagram_beats.h"
#include "rendezvous/doorkeeper.h"
#include "rendezvous/grpc_setup.h"
#include "rendezvous/service.h"

namespace fleet {
namespace {

// Who listens there, where it is a rendezvous.
std::optional<wire::DescribeReply> ask_who(const std::string& address, const Security& security) {
  const auto stub = wire::Rendezvous::NewStub(make_channel(address, security));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
  wire::DescribeReply reply;
  if (!stub->Describe(&context, {}, &reply).ok()) return std::nullopt;
  return reply;
}

// After so long a plain connection without a call is closed.
constexpr int kIdle = 10 * 60'000;

// A connection costs a descriptor, and 1024, the usual limit, are fewer than a large job has, or a
// stranger can open. The ranks keep theirs: they are the guardian's, which runs already.
void raise_descriptor_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

bool listens_everywhere(const std::string& host) {
  return host.empty() || host == "0.0.0.0" || host == "::" || host == "[::]";
}

std::string local_host(const std::string& host) {
  if (!listens_everywhere(host)) return host;
  return host.find(':') == std::string::npos ? "127.0.0.1" : "::1";
}

[[noreturn]] void cannot_listen(const RendezvousServerOptions& options, int error) {
  const std::string address = host_port(options.host, options.port);
  if (error == EACCES) {
    throw Error(ErrorCode::kUsage, "port " + std::to_string(options.port) + " is for root only",
                address, "choose a --rdzv_port above 1023");
  }
  if (error != EADDRINUSE) {
    throw Error(ErrorCode::kIo, std::string("cannot listen: ") + strerror(error), address,
                "this host must have the address that --master, or the first of --ips, names");
  }
  const std::string taken = "port " + std::to_string(options.port) + " is taken";
  const auto holder = ask_who(host_port(local_host(options.host), options.port), options.security);
  if (!holder) {
    throw Error(ErrorCode::kUsage, taken + " by another program, or a job with another secret",
                address, "choose another with --rdzv_port, on every node");
  }
  const std::string who = " (pid " + std::to_string(holder->pid()) + " on " +
                          shown_name(holder->hostname()) + ", " + std::to_string(holder->joined()) +
                          " of " + std::to_string(holder->nnodes()) + " nodes)";
  if (holder->job_id() == options.job.job_id) {
    throw Error(
        ErrorCode::kUsage,
        taken + " by another job with the same id '" + shown_name(holder->job_id()) + "'" + who,
        address, "end that one, or give this one another --job_id and --rdzv_port");
  }
  throw Error(ErrorCode::kUsage,
              taken + " by the rendezvous of job '" + shown_name(holder->job_id()) + "'" + who,
              address, "choose another with --rdzv_port, on every node");
}

// All nodes may be behind one address, and all of their ranks connect in the same moment.
ConnectionBudget::Limits strangers_of(const JobSpec& job) {
  ConnectionBudget::Limits limits;
  limits.at_once += 16 * job.nnodes;
  return limits;
}

JobTimes times_of(const RendezvousServerOptions& options) {
  JobTimes times;
  times.timeout = options.timeout;
  times.beat = beat_for(options.heartbeat_timeout);
  times.silence = silence_for(options.heartbeat_timeout);
  times.first_progress = options.first_progress;
  times.progress_every = options.progress_every;
  return beats_for(options.job.nnodes, times);
}

}  // namespace

class RendezvousServer::Impl {
 public:
  explicit Impl(RendezvousServerOptions options)
      : options_(std::move(options)),
        service_(options_.job, times_of(options_), reach(options_),
                 options_.from ? &*options_.from : nullptr),
        credentials_(server_credentials(options_.security)),
        door_(options_.strangers.value_or(strangers_of(options_.job)), options_.trust_loopback) {
    raise_descriptor_limit();
    const auto patience = std::max(options_.heartbeat_timeout, kStreamPatience);
    if (const int error = door_.listen(options_.host, options_.port, patience)) {
      cannot_listen(options_, error);
    }
    grpc::ServerBuilder builder;
    set_up_server(&builder, patience);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               static_cast<int>(options_.greeting.count()));
    // Without TLS anybody gets this far; a friend that comes back later connects again.
    if (!options_.security.tls) {
      builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdle);
    }
    beat_by_datagrams();
    door_.serve(&builder, credentials_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    FLEET_CHECK(server_, "gRPC serves nothing");
    door_.open();
  }
  ~Impl() { stop(std::chrono::milliseconds(0)); }

  void stop(std::chrono::milliseconds drain) {
    std::lock_guard lock(stopping_);
    if (!server_) return;
    service_.shut_down(drain);
    door_.close();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
    server_->Wait();
    server_.reset();
  }
  int port() const { return door_.port(); }
  std::string local_address() const { return host_port(local_host(options_.host), port()); }
  bool open_to_network() const {
    const std::string& host = options_.host;
    return !host.starts_with("127.") && host != "::1" && host != "[::1]" && host != "localhost";
  }

 private:
  // Of a large job these would be more than the host can read.
  void beat_by_datagrams() {
    const int nnodes = options_.job.nnodes;
    if (nnodes < 2 || nnodes >= kLargeJob || !open_to_network()) return;
    HostBeats datagrams;
    if (datagrams.open(options_.host, port())) {
      service_.beat_by(std::move(datagrams));
    } else {
      spdlog::debug("no beats by datagrams: UDP port {} cannot be had", port());
    }
  }

  // What people are told: the address that --ips or --master names, rather than 0.0.0.0.
  static std::string reach(const RendezvousServerOptions& options) {
    const bool listed = listens_everywhere(options.host) && !options.job.addresses.empty();
    return host_port(listed ? options.job.addresses[0] : options.host, options.port);
  }

  RendezvousServerOptions options_;
  RendezvousService service_;
  std::mutex stopping_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // renew themselves while it serves
  std::unique_ptr<grpc::Server> server_;
  Doorkeeper door_;  // last: it hands connections to the server
};

RendezvousServer::RendezvousServer(RendezvousServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
RendezvousServer::~RendezvousServer() = default;
int RendezvousServer::port() const { return impl_->port(); }
std::string RendezvousServer::local_address() const { return impl_->local_address(); }
bool RendezvousServer::open_to_network() const { return impl_->open_to_network(); }
void RendezvousServer::stop(std::chrono::milliseconds drain) { impl_->stop(drain); }

}  // namespace fleet
