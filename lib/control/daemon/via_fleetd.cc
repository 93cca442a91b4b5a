#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>

#include "base/descriptor_limit.h"
#include "base/log.h"
#include "base/running_clock.h"
#include "base/standard_error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "daemon/attach_terminal.h"
#include "daemon/console_output.h"
#include "daemon/job_info.h"
#include "daemon/message_stream.h"
#include "daemon/node_requests.h"
#include "daemon/protocol.h"
#include "daemon/remote_job.h"
#include "daemon/via.h"
#include "launch/planning/launch_config.h"
#include "launch/starting/startup_messages.h"
#include "node/console.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"
#include "transport/failure_detector.h"
#include "transport/grpc_setup.h"
#include "transport/validate.h"

namespace fleet {
namespace {

// How long to wait for a blocked console after the job has ended.
constexpr std::chrono::seconds kConsoleFlushTimeout{2};

// Passes events to RemoteJob, which makes all decisions, and executes its actions.
class JobClient {
 public:
  JobClient(std::vector<RemoteNode> nodes, RemoteJob::Options options, std::string attached_to)
      : nodes_(std::move(nodes)),
        attached_to_(std::move(attached_to)),
        job_(names(), std::move(options)),
        signals_(loop_),
        heartbeat_timer_(loop_),
        timer_(loop_),
        output_(loop_, nodes_.size() > 1) {}

  EndClient run() {
    const bool attached = !attached_to_.empty();
    for (const int signal : forwarded_signals()) {
      if (signal != SIGINT || !attached) signals_.add(signal);
    }
    ::signal(SIGPIPE, SIG_IGN);
    if (attached) {
      terminal_.emplace(loop_, AttachTerminal::Handlers{[this] { step(DetachRequested{}); },
                                                        [this] { step(SignalReceived{SIGINT}); }});
      terminal_->print_keys(attached_to_);
    }
    signals_.on_signal([this](int signal) { step(SignalReceived{signal}); });
    output_.on_drained([this] {
      if (!output_.full()) pause_reading(false);
      if (ended_ && output_.idle()) loop_.stop();
    });
    for (size_t node = 0; node < nodes_.size(); ++node) {
      sessions_.push_back(
          {nullptr, FailureDetector(kHeartbeatTimes, std::chrono::steady_clock::now())});
    }
    for (size_t node = 0; node < nodes_.size(); ++node) connect(static_cast<int>(node));
    step(RequestsSent{});
    send_heartbeats();
    loop_.run();
    for (const Session& session : sessions_) {
      if (session.stream) session.stream->cancel();
    }
    if (output_.report_loss() && end_.exit_code == 0) end_.exit_code = 1;
    return end_;
  }

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const RemoteNode& node : nodes_) all.push_back(node.name);
    return all;
  }

  void connect(int node) {
    nodes_[static_cast<size_t>(node)].connect(
        loop_, [this, node](const std::shared_ptr<grpc::Channel>& channel) {
          channel ? begin(node, channel)
                  : on_closed(node, grpc::Status(grpc::StatusCode::UNAVAILABLE, ""));
        });
  }

  void begin(int node, const std::shared_ptr<grpc::Channel>& channel) {
    Session& session = sessions_[static_cast<size_t>(node)];
    if (session.closed || ended_) return;
    session.stream = ClientStream::start(
        loop_, channel, nodes_[static_cast<size_t>(node)].initial_request,
        {[this, node](const wire::FleetdMessage& event) { on_event(node, event); }, [] {},
         [this, node](const grpc::Status& status) { on_closed(node, status); }});
    if (reading_paused_) session.stream->pause_reading(true);
  }

  // --- events ---
  void on_event(int node, const wire::FleetdMessage& event) {
    Session& session = sessions_[static_cast<size_t>(node)];
    session.failure_detector.received(std::chrono::steady_clock::now());
    session.connected = true;
    try {
      validate(event);
    } catch (const Error& error) {
      return step(
          FromFleetd{node, envelope(&wire::FleetdMessage::mutable_refused, to_wire(error))});
    }
    event.has_output() ? show(node, event.output()) : step(FromFleetd{node, event});
  }

  void on_closed(int node, const grpc::Status& status) {
    const auto index = static_cast<size_t>(node);
    if (!ended_) step(FleetdLost{node, nodes_[index].explain(status, sessions_[index].connected)});
  }

  void send_heartbeats() {
    heartbeat_timer_.after(kHeartbeatTimes.heartbeat_interval, [this] {
      if (ended_) return;
      const auto now = std::chrono::steady_clock::now();
      clock_.at(now);
      for (Session& session : sessions_) {
        if (!session.stream) {  // not connected yet
          session.failure_detector.received(now);
          continue;
        }
        if (session.stream->queued_bytes() == 0) {
          session.stream->send(envelope(&wire::ClientMessage::mutable_heartbeat));
        }
        // While reading is paused, heartbeats cannot arrive. gRPC reports nodes that do not
        // connect.
        if (reading_paused_ || !session.connected) session.failure_detector.received(now);
        if (!session.failure_detector.poll(now)) session.stream->cancel();
      }
      send_heartbeats();
    });
  }

  void show(int node, const wire::Output& output) {
    output_.write(nodes_[static_cast<size_t>(node)].name, output.error(), output.text());
    if (output_.full()) pause_reading(true);
  }

  void pause_reading(bool paused) {
    if (reading_paused_ == paused) return;
    reading_paused_ = paused;
    for (const Session& session : sessions_) {
      if (session.stream) session.stream->pause_reading(paused);
    }
  }

  // --- actions ---
  void step(const RemoteJobEvent& event) {
    if (ended_) return;
    for (RemoteJobAction& action : job_.step(event, clock_.at(std::chrono::steady_clock::now()))) {
      std::visit([this](auto& one) { carry_out(one); }, action);
    }
    if (ended_) return;
    timer_.at(clock_.steady(job_.next_deadline()), [this] { step(TimePassed{}); });
  }
  void carry_out(ToFleetd& action) {
    const Session& session = sessions_[static_cast<size_t>(action.node)];
    if (session.stream) session.stream->send(std::move(action.message));
  }
  void carry_out(const CloseSession& action) {
    Session& session = sessions_[static_cast<size_t>(action.node)];
    session.closed = true;
    if (session.stream) session.stream->close();
  }
  void carry_out(const ShowLine& line) {
    const bool warning = line.kind == ShowLine::kWarning;
    if (!warning) output_.flush();
    spdlog::log(warning ? spdlog::level::warn : spdlog::level::err, "{}", line.text);
  }
  void carry_out(const EndClient& end) {
    ended_ = true;
    end_ = end;
    output_.flush();
    if (output_.idle()) return loop_.stop();
    timer_.after(kConsoleFlushTimeout, [this] { loop_.stop(); });
  }

  const std::vector<RemoteNode> nodes_;
  const std::string attached_to_;  // the job's id; "": this client has started the job
  EventLoop loop_;
  RemoteJob job_;
  // Times the job's limits; the heartbeats keep it running.
  RunningClock clock_{std::chrono::steady_clock::now(), 2 * kHeartbeatTimes.heartbeat_interval};
  LoopSignals signals_;
  std::optional<AttachTerminal> terminal_;
  LoopTimer heartbeat_timer_, timer_;
  ConsoleOutput output_;
  struct Session {
    std::shared_ptr<ClientStream> stream;  // nullptr until there is a connection
    FailureDetector failure_detector;
    bool connected = false;  // the node has answered
    bool closed = false;     // by this client
  };
  std::vector<Session> sessions_;  // by node
  bool reading_paused_ = false, ended_ = false;
  EndClient end_;
};

RemoteNode fleetd_node(const std::string& name, const std::string& address,
                       const Security& security, bool owned) {
  RemoteNode node;
  node.name = name;
  node.connect = [=](EventLoop&, const RemoteNode::Connected& connected) {
    connected(make_channel(address, security));
  };
  node.explain = [=](const grpc::Status& status, bool connected) {
    if (!connected) return error_of(status, address, security);
    return Error(ErrorCode::kPeerLost, "the connection to fleetd broke", address,
                 owned ? "its processes on that node will be stopped" : "");
  };
  return node;
}

// After --detach.
void print_reattach_commands(const LaunchConfig& config, const std::string& id,
                             const std::vector<std::string>& addresses) {
  if (config.logs.quiet) {
    // Print a generated name, because nothing else does.
    if (!config.job_id.given()) write_standard_error("job " + id + "\n");
    return;
  }
  std::string text = "job " + shown_name(id) + " runs on " + std::to_string(addresses.size()) +
                     (addresses.size() == 1 ? " node" : " nodes") +
                     " and continues without this terminal:\n";
  for (const char* command : {"status ", "logs -f ", "attach ", "stop "}) {
    text += std::string("  fleetrun ") + command + escape_controls(shell_word(id)) +
            " --fleetd=" + join(addresses, ",") + "\n";
  }
  write_standard_error(text);
}

}  // namespace

EndClient run_job_client(std::vector<RemoteNode> nodes, RemoteJob::Options options,
                         std::string attached_to) {
  return JobClient(std::move(nodes), std::move(options), std::move(attached_to)).run();
}

RemoteJob::Options remote_job_options(const LaunchConfig& config) {
  RemoteJob::Options options;
  if (config.nodes.count.by_flag()) options.min_nodes = config.nodes.count.value->min;
  options.restarts = config.restarts.max_restarts > 0;
  options.grace = config.grace;
  options.start_timeout = config.rendezvous_timeout;
  options.shows_output = same_destination(STDOUT_FILENO, STDERR_FILENO);
  return options;
}

int start_via_fleetd(const LaunchRequest& request) {
  const LaunchConfig& config = request.config;
  set_up_logging(config.logs.own_level(), "fleetrun");
  raise_descriptor_limit();  // a node costs one
  const std::vector<NodeRequest> requests = node_requests(request, client_context(config.security));
  const Security security = fleetd_security(config.via.fleetd_secret_file, false);
  std::vector<RemoteNode> nodes;
  std::vector<std::string> addresses;
  for (const NodeRequest& node : requests) {
    nodes.push_back(fleetd_node(node.name, node.address, security, true));
    *nodes.back().initial_request.mutable_prepare() = node.job;
    addresses.push_back(node.address);
  }
  print_configuration(request);
  if (!config.job_id.given())
    spdlog::info("the job id is {}", shown_name(requests[0].job.job_id()));
  RemoteJob::Options options = remote_job_options(config);
  if (config.via.detach) options.mode = RemoteJob::Mode::kDetach;
  const EndClient end = run_job_client(std::move(nodes), std::move(options));
  if (end.detached && end.exit_code == 0)
    print_reattach_commands(config, requests[0].job.job_id(), addresses);
  return end.exit_code;
}

ViaPlan plan_via_fleetd(const LaunchRequest& request) {
  return plan_of_requests(request, node_requests(request, client_context(request.config.security)),
                          [](const NodeRequest& node) { return "fleetd at " + node.address; });
}

int attach_via_fleetd(const std::string& job_id, const std::vector<std::string>& addresses,
                      bool restarts, const Security& security) {
  std::vector<RemoteNode> nodes;
  for (const std::string& address : addresses) {
    nodes.push_back(fleetd_node(address.substr(0, address.rfind(':')), address, security, false));
    nodes.back().initial_request.mutable_attach()->set_job_id(job_id);
  }
  RemoteJob::Options options;
  options.mode = RemoteJob::Mode::kAttach;
  options.restarts = restarts;
  const EndClient end = run_job_client(std::move(nodes), std::move(options), job_id);
  if (end.detached && end.exit_code == 0) print_detached(job_id);
  return end.exit_code;
}

}  // namespace fleet
