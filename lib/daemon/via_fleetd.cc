#include "daemon/via_fleetd.h"

#include <signal.h>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/log.h"
#include "base/standard_error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "daemon/job_client.h"
#include "daemon/job_info.h"
#include "daemon/node_requests.h"
#include "daemon/protocol.h"
#include "daemon/pulse.h"
#include "daemon/remote_job.h"
#include "daemon/secret.h"
#include "daemon/shown_output.h"
#include "daemon/talk.h"
#include "launch/elasticity.h"
#include "launch/start_screen.h"
#include "rendezvous/grpc_setup.h"

namespace fleet {
namespace {

namespace asio = boost::asio;

// How long to wait for a blocked console after the job has ended.
constexpr std::chrono::seconds kConsoleAfter{2};

// Passes events to RemoteJob, which makes all decisions, and executes its actions.
class JobClient : private RemoteJobEffects {
 public:
  JobClient(std::vector<RemoteNode> nodes, RemoteJob::Terms terms)
      : nodes_(std::move(nodes)),
        job_(*this, names(), std::move(terms)),
        signals_(loop_),
        beat_(loop_),
        patience_(loop_),
        output_(loop_, nodes_.size() > 1) {}

  // Returns the exit code.
  int run() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
      struct sigaction action;
      const bool ignored =
          ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
      if (!ignored) signals_.add(signal);  // ignored: nohup, or the background of a script
    }
    ::signal(SIGPIPE, SIG_IGN);
    wait_for_signal();
    output_.on_room([this] {
      if (!output_.full()) hold(false);
      if (ending_ && output_.idle()) loop_.stop();
    });
    for (size_t node = 0; node < nodes_.size(); ++node) connect(static_cast<int>(node));
    beat();
    loop_.run();
    for (const auto& talk : talks_) talk->cancel();
    return code_;
  }
  bool left() const { return job_.detached(); }

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const RemoteNode& node : nodes_) all.push_back(node.name);
    return all;
  }

  void connect(int node) {
    const RemoteNode& remote = nodes_[static_cast<size_t>(node)];
    talks_.push_back(
        ClientTalk::start(loop_, remote.connect(),
                          {[this, node](const Tell& tell) { on_tell(node, tell); }, [] {},
                           [this, node](const grpc::Status& status) { on_closed(node, status); }}));
    talks_.back()->send(remote.first);
    pulses_.emplace_back(std::chrono::steady_clock::now());
    connected_.push_back(false);
  }

  // --- events ---
  void on_tell(int node, const Tell& tell) {
    const auto place = static_cast<size_t>(node);
    pulses_[place].heard(std::chrono::steady_clock::now());
    connected_[place] = true;
    if (tell.has_output()) show(node, tell.output());
    if (tell.has_refused()) job_.on_refused(node, error_from(tell.refused()));
    if (tell.has_prepared()) job_.on_prepared(node);
    if (tell.has_hosting()) job_.on_hosting(node, tell.hosting().rdzv_port());
    if (tell.has_running()) job_.on_running(node, tell.running().nnodes());
    if (tell.has_detached()) job_.on_detached(node);
    if (tell.has_ended()) {
      job_.on_ended(node, tell.ended().code(), read_verdict(tell.ended().verdict()));
    }
  }

  void on_closed(int node, const grpc::Status& status) {
    if (ending_) return;
    const auto place = static_cast<size_t>(node);
    job_.on_lost(node, nodes_[place].explain(status, connected_[place]));
  }

  void wait_for_signal() {
    signals_.async_wait([this](boost::system::error_code error, int signal) {
      if (error) return;
      wait_for_signal();
      job_.on_signal(signal);
    });
  }

  void beat() {
    beat_.expires_after(Pulse::kBeat);
    beat_.async_wait([this](boost::system::error_code error) {
      if (error || ending_) return;
      const auto now = std::chrono::steady_clock::now();
      for (size_t node = 0; node < talks_.size(); ++node) {
        Ask ask;
        ask.mutable_beat();
        if (talks_[node]->waiting() == 0) talks_[node]->send(std::move(ask));
        // While reading is paused, heartbeats cannot arrive. gRPC reports nodes that do not
        // connect.
        if (held_ || !connected_[node]) pulses_[node].heard(now);
        if (!pulses_[node].look(now)) talks_[node]->cancel();
      }
      beat();
    });
  }

  void show(int node, const daemon_wire::Output& output) {
    output_.write(nodes_[static_cast<size_t>(node)].name, output.error(), output.text());
    if (output_.full()) hold(true);
  }

  void hold(bool held) {
    if (held_ == held) return;
    held_ = held;
    for (const auto& talk : talks_) talk->hold(held);
  }

  // --- effects ---
  void launch(int node, int rdzv_port) override {
    Ask ask;
    ask.mutable_launch()->set_rdzv_port(rdzv_port);
    send(node, std::move(ask));
  }
  void signal(int node, int number) override {
    Ask ask;
    ask.mutable_signal()->set_number(number);
    send(node, std::move(ask));
  }
  void detach(int node) override {
    Ask ask;
    ask.mutable_detach();
    send(node, std::move(ask));
  }
  void hang_up(int node) override { talks_[static_cast<size_t>(node)]->end(); }
  void say(const std::string& text) override { spdlog::warn("{}", text); }
  void fail(const std::string& text) override {
    output_.flush();
    spdlog::error("{}", text);
  }
  void be_patient(std::chrono::milliseconds time) override {
    patience_.expires_after(time);
    patience_.async_wait([this](boost::system::error_code error) {
      if (!error && !ending_) job_.on_patience_over();
    });
  }
  void end(int exit_code) override {
    ending_ = true;
    code_ = exit_code;
    output_.flush();
    if (output_.idle()) return loop_.stop();
    patience_.expires_after(kConsoleAfter);
    patience_.async_wait([this](boost::system::error_code) { loop_.stop(); });
  }

  void send(int node, Ask ask) { talks_[static_cast<size_t>(node)]->send(std::move(ask)); }

  const std::vector<RemoteNode> nodes_;
  asio::io_context loop_{1};
  RemoteJob job_;
  asio::signal_set signals_;
  asio::steady_timer beat_, patience_;
  ShownOutput output_;
  std::vector<std::shared_ptr<ClientTalk>> talks_;
  std::vector<Pulse> pulses_;
  std::vector<bool> connected_;
  bool held_ = false, ending_ = false;
  int code_ = 1;
};

RemoteNode fleetd_node(const std::string& name, const std::string& address,
                       const Security& security, bool owned) {
  RemoteNode node;
  node.name = name;
  node.connect = [=] { return make_channel(address, security); };
  node.explain = [=](const grpc::Status& status, bool connected) {
    if (!connected) return error_of(status, address, security);
    return Error(ErrorCode::kPeerLost, "the connection to fleetd broke", address,
                 owned ? "its processes on that node will be stopped" : "");
  };
  return node;
}

}  // namespace

ClientEnd run_job_client(std::vector<RemoteNode> nodes, RemoteJob::Terms terms) {
  JobClient client(std::move(nodes), std::move(terms));
  const int code = client.run();
  return {code, client.left()};
}

RemoteJob::Terms terms_of(const Settings& settings) {
  RemoteJob::Terms terms;
  if (given_by_flag(settings, "nnodes")) terms.fewest = node_count(settings).min;
  terms.restarts = restart_policy(settings).max_restarts > 0;
  terms.grace = std::chrono::milliseconds(static_cast<int64_t>(settings.number("grace") * 1000));
  return terms;
}

namespace {

// After --detach.
void say_how_to_come_back(const Settings& settings, const std::string& id,
                          const std::vector<std::string>& addresses) {
  if (settings.boolean("quiet")) {
    // Print a generated name, because nothing else does.
    if (!settings.given("job_id")) write_standard_error("job " + id + "\n");
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

int start_via_fleetd(LaunchRequest request) {
  const Settings& settings = request.settings;
  set_up_launch_logging(settings);
  const std::vector<NodeRequest> requests = node_requests(request, client_place(settings));
  const Security security = fleetd_security(settings.text("fleetd_secret_file"), false);
  std::vector<RemoteNode> nodes;
  std::vector<std::string> addresses;
  for (const NodeRequest& node : requests) {
    nodes.push_back(fleetd_node(node.name, node.address, security, true));
    *nodes.back().first.mutable_prepare() = to_wire(node.job);
    addresses.push_back(node.address);
  }
  print_configuration(request);
  if (!settings.given("job_id"))
    spdlog::info("the job id is {}", shown_name(requests[0].job.job_id));
  RemoteJob::Terms terms = terms_of(settings);
  if (settings.boolean("detach")) terms.mode = RemoteJob::Mode::kDetach;
  const ClientEnd end = run_job_client(std::move(nodes), std::move(terms));
  if (end.left && end.code == 0) say_how_to_come_back(settings, requests[0].job.job_id, addresses);
  return end.code;
}

ViaPlan plan_via_fleetd(const LaunchRequest& request) {
  return plan_of_requests(request, node_requests(request, client_place(request.settings)),
                          [](const NodeRequest& node) { return "fleetd at " + node.address; });
}

int attach_via_fleetd(const std::string& job_id, const std::vector<std::string>& addresses,
                      bool restarts, const Security& security) {
  std::vector<RemoteNode> nodes;
  for (const std::string& address : addresses) {
    nodes.push_back(fleetd_node(address.substr(0, address.rfind(':')), address, security, false));
    nodes.back().first.mutable_attach()->set_job_id(job_id);
  }
  RemoteJob::Terms terms;
  terms.mode = RemoteJob::Mode::kAttach;
  terms.restarts = restarts;
  return run_job_client(std::move(nodes), std::move(terms)).code;
}

}  // namespace fleet
