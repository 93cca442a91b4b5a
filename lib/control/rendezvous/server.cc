#include "rendezvous/server.h"

#include <grpcpp/grpcpp.h>
#include <string.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/descriptor_limit.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/terminal_text.h"
#include "proto/control.grpc.pb.h"
#include "rendezvous/host_probe.h"
#include "rendezvous/job_host.h"
#include "rendezvous/node_transport.h"
#include "transport/connection_limiter.h"
#include "transport/datagram_heartbeats.h"
#include "transport/grpc_setup.h"
#include "transport/local_socket.h"
#include "transport/memory_guard.h"
#include "transport/tcp_listener.h"

namespace fleet {
namespace {

// Describes the server at the address, if it is a rendezvous.
std::optional<wire::DescribeReply> describe_server(const std::string& address,
                                                   const Security& security) {
  const auto stub = wire::Rendezvous::NewStub(make_channel(address, security));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(3));
  wire::DescribeReply reply;
  if (!stub->Describe(&context, {}, &reply).ok()) return std::nullopt;
  return reply;
}

std::string local_host(const std::string& host) {
  if (!is_any_address(host)) return host;
  return host.find(':') == std::string::npos ? "127.0.0.1" : "::1";
}

// Tells a taken port from other errors of usage.
class PortTaken final : public Error {
  using Error::Error;
};

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
  const auto holder =
      describe_server(host_port(local_host(options.host), options.port), options.security);
  if (!holder) {
    throw PortTaken(ErrorCode::kUsage, taken + " by another program or a job with another secret",
                    address, "choose another with --rdzv_port, on every node");
  }
  const std::string who = " (pid " + std::to_string(holder->pid()) + " on " +
                          shown_name(holder->hostname()) + ", " + std::to_string(holder->joined()) +
                          " of " + std::to_string(holder->nnodes()) + " nodes)";
  if (holder->job_id() == options.job.config.job_id()) {
    throw PortTaken(
        ErrorCode::kUsage,
        taken + " by another job with the same id '" + shown_name(holder->job_id()) + "'" + who,
        address, "end that one, or give this one another --job_id and --rdzv_port");
  }
  throw PortTaken(ErrorCode::kUsage,
                  taken + " by the rendezvous of job '" + shown_name(holder->job_id()) + "'" + who,
                  address, "choose another with --rdzv_port, on every node");
}

// All nodes may share one address, and all of their ranks connect at the same moment.
ConnectionBudget::Limits limits_of(const RendezvousServerOptions& options) {
  if (options.unauthenticated_limits) return *options.unauthenticated_limits;
  const auto of_job = static_cast<size_t>(options.connections_per_node) *
                      static_cast<size_t>(options.job.config.nnodes());
  ConnectionBudget::Limits limits;
  limits.total += of_job;
  limits.burst += static_cast<double>(of_job);
  return limits;
}

// By how much the process that serves a job without TLS may grow: more than a full store, its
// messages and the job's connections need, less than a machine has.
int64_t max_growth_of(const RendezvousServerOptions& options) {
  if (options.max_growth) return *options.max_growth;
  constexpr int64_t kOfConnection = 512 << 10;
  return (int64_t{1280} << 20) +
         kOfConnection * options.connections_per_node * options.job.config.nnodes();
}

JobTimes times_of(const RendezvousServerOptions& options) {
  JobTimes times;
  times.timeout = options.timeout;
  times.heartbeat_interval = heartbeat_interval_for(options.heartbeat_timeout);
  times.max_silence = max_silence_for(options.heartbeat_timeout);
  times.first_progress = options.first_progress;
  times.progress_every = options.progress_every;
  return heartbeat_intervals_for(options.job.config.nnodes(), times);
}

}  // namespace

namespace {

// A gRPC server of the service.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // Accepts no more connections; existing ones continue.
  virtual void close() = 0;
  virtual void shut_down() = 0;

 protected:
  void start(grpc::ServerBuilder* builder, grpc::Service* service) {
    builder->RegisterService(service);
    server_ = builder->BuildAndStart();
    FLEET_CHECK(server_, "gRPC did not start the server");
  }
  void end_server() {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
    server_->Wait();
    server_.reset();
  }

  std::unique_ptr<grpc::Server> server_;
};

// For this user's processes on this host.
class LocalEndpoint final : public Endpoint {
 public:
  LocalEndpoint(const std::string& folder, grpc::Service* service)
      : service_(service),
        socket_(LocalSocket::listen(folder)),
        accept_("local", [this](UniqueFd fd, const sockaddr_storage&) { take(std::move(fd)); }) {
    accept_.add(socket_.take_listener());
    accept_.start();
  }
  ~LocalEndpoint() override {
    close();
    shut_down();
  }
  void close() override { accept_.stop(); }
  void shut_down() override { end_server(); }
  const std::string& address() const { return socket_.address(); }

 private:
  void take(UniqueFd fd) {
    if (!is_own_peer(fd.get())) return;
    try {
      if (!acceptor_) start_serving();
    } catch (...) {
      acceptor_.reset();  // without a server, it would keep connections waiting
      throw;
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd.release();
    acceptor_->HandleNewConnection(&connection);
  }

  // With the first connection: starting gRPC takes milliseconds, and programs that do not use the
  // store never connect.
  void start_serving() {
    grpc::ServerBuilder builder;
    set_up_local_server(&builder);
    using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        Type::FROM_FD, grpc::InsecureServerCredentials());
    start(&builder, service_);
  }

  grpc::Service* const service_;
  LocalSocket socket_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  AcceptLoop accept_;
};

class NetworkEndpoint final : public Endpoint {
 public:
  NetworkEndpoint(const RendezvousServerOptions& options, grpc::Service* service)
      : limiter_(limits_of(options)), credentials_(server_credentials(options.security)) {
    const auto peer_timeout = std::max(options.heartbeat_timeout, kStreamTimeout);
    if (const int error = limiter_.listen(options.host, options.port, peer_timeout)) {
      cannot_listen(options, error);
    }
    grpc::ServerBuilder builder;
    set_up_server(&builder, peer_timeout);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               static_cast<int>(options.handshake_timeout.count()));
    if (!options.security.tls) limit_unauthenticated_clients(&builder);
    limiter_.serve(&builder, credentials_);
    start(&builder, service);
  }
  // Accepts connections from now on.
  void open() { limiter_.open(); }
  ~NetworkEndpoint() override {
    close();
    shut_down();
  }
  void close() override { limiter_.stop_listening(); }
  void shut_down() override {
    end_server();
    limiter_.close();
  }
  int port() const { return limiter_.port(); }

 private:
  ConnectionLimiter limiter_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // renew themselves while the server runs
};

}  // namespace

class RendezvousServer::Impl {
 public:
  explicit Impl(RendezvousServerOptions options)
      : options_(std::move(options)),
        host_(std::make_shared<JobHost>(options_.job, times_of(options_), display_address(options_),
                                        options_.from ? &*options_.from : nullptr)),
        service_(make_rendezvous_service(host_.get())) {
    raise_descriptor_limit();  // not of the ranks: the guardian, which starts them, runs already
    if (options_.network) network_ = std::make_unique<NetworkEndpoint>(options_, service_.get());
    open_datagram_heartbeats();
    if (options_.local_folder) {
      local_ = std::make_unique<LocalEndpoint>(*options_.local_folder, service_.get());
    }
    if (network_ && !options_.security.tls) {
      guard_ = std::make_unique<MemoryGuard>(max_growth_of(options_), [this] { end_flood(); });
    }
    if (network_) network_->open();
    if (network_ && options_.job.config.nnodes() > 1) start_probe();
  }
  ~Impl() {
    stop(std::chrono::milliseconds(0));
    guard_.reset();
  }

  void stop(std::chrono::milliseconds drain) {
    const MutexLock lock(stopping_);
    if (std::exchange(stopped_, true)) return;
    probe_.reset();
    host_->shut_down(drain);
    for (Endpoint* endpoint : endpoints()) endpoint->close();
    for (Endpoint* endpoint : endpoints()) endpoint->shut_down();
  }
  std::shared_ptr<JobHost> host() const { return host_; }
  int port() const { return network_ ? network_->port() : 0; }
  std::string local_address() const { return local_ ? local_->address() : network_address(); }
  std::string network_address() const {
    return network_ ? host_port(local_host(options_.host), port()) : std::string();
  }
  bool open_to_network() const {
    const std::string& host = options_.host;
    const bool loopback =
        host.starts_with("127.") || host == "::1" || host == "[::1]" || host == "localhost";
    return options_.network && !loopback;
  }

 private:
  void start_probe() {
    const MutexLock lock(stopping_);
    if (stopped_) return;  // flooded already
    probe_ = HostProbe::start(
        make_grpc_transport(network_address(), options_.security, options_.heartbeat_timeout),
        host_->probe_token(), probe_interval_for(times_of(options_).heartbeat_interval));
  }

  // The other nodes lose their host: the job ends, or continues elsewhere.
  void end_flood() {
    const MutexLock lock(stopping_);
    if (stopped_) return;
    spdlog::error(
        "{} is flooded: unauthenticated clients fill the memory of this process, so it closes the "
        "port; leave out --insecure, then only nodes with the job's secret get in",
        network_address());
    network_->close();
    network_->shut_down();
  }

  // In a large job there would be more datagrams than the host can read.
  void open_datagram_heartbeats() {
    const int nnodes = options_.job.config.nnodes();
    if (nnodes < 2 || nnodes >= kLargeJob || !open_to_network()) return;
    HostHeartbeats datagrams;
    if (datagrams.open(options_.host, port())) {
      host_->use_datagram_heartbeats(std::move(datagrams));
    } else {
      spdlog::debug("no datagram heartbeats: cannot bind UDP port {}", port());
    }
  }

  std::vector<Endpoint*> endpoints() const {
    std::vector<Endpoint*> all;
    if (network_) all.push_back(network_.get());
    if (local_) all.push_back(local_.get());
    return all;
  }

  // The address shown to users: the one that --ips or --master names, rather than 0.0.0.0.
  static std::string display_address(const RendezvousServerOptions& options) {
    const bool listed = is_any_address(options.host) && !options.job.config.addresses().empty();
    return host_port(listed ? options.job.config.addresses(0) : options.host, options.port);
  }

  RendezvousServerOptions options_;
  std::shared_ptr<JobHost> host_;
  const std::unique_ptr<grpc::Service> service_;
  Mutex stopping_;
  bool stopped_ FLEET_GUARDED_BY(stopping_) = false;
  std::shared_ptr<HostProbe> probe_ FLEET_GUARDED_BY(stopping_);
  std::unique_ptr<NetworkEndpoint> network_;
  std::unique_ptr<LocalEndpoint> local_;
  std::unique_ptr<MemoryGuard> guard_;  // without TLS
};

RendezvousServer::RendezvousServer(RendezvousServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
std::unique_ptr<RendezvousServer> RendezvousServer::make_if_free(RendezvousServerOptions options) {
  try {
    return std::make_unique<RendezvousServer>(std::move(options));
  } catch (const PortTaken&) {
    return nullptr;
  }
}
RendezvousServer::~RendezvousServer() = default;
std::shared_ptr<JobHost> RendezvousServer::host() const { return impl_->host(); }
int RendezvousServer::port() const { return impl_->port(); }
std::string RendezvousServer::local_address() const { return impl_->local_address(); }
std::string RendezvousServer::network_address() const { return impl_->network_address(); }
bool RendezvousServer::open_to_network() const { return impl_->open_to_network(); }
void RendezvousServer::stop(std::chrono::milliseconds drain) { impl_->stop(drain); }

}  // namespace fleet
