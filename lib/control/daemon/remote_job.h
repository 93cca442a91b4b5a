// A job on several nodes, started through their fleetds: the client's reactions to their messages,
// as a state machine: step(event, now) returns the actions. Pure: no sockets, no clock of its own.
// Below it, the client that gives it events and carries out its actions.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/job_info.h"
#include "node/supervision.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace fleet {

class EventLoop;
struct LaunchConfig;

// --- Events, in addition to TimePassed ---
struct RequestsSent {};  // to all nodes; comes first
struct FromFleetd {
  int node;
  wire::FleetdMessage message;
};
struct FleetdLost {  // the session broke, or could not be opened
  int node;
  Error why;
};
struct SignalReceived {  // by the client
  int number;
};
struct DetachRequested {};  // by a person, only in Mode::kAttach
using RemoteJobEvent =
    std::variant<RequestsSent, FromFleetd, FleetdLost, SignalReceived, DetachRequested, TimePassed>;

// --- Actions, in addition to ShowLine ---
struct ToFleetd {
  int node;
  wire::ClientMessage message;
};
struct CloseSession {  // releases a reservation, stops a running job
  int node;
};
struct EndClient {  // once, last
  int exit_code = 1;
  bool detached = false;  // the job continues
};
using RemoteJobAction = std::variant<ToFleetd, CloseSession, ShowLine, EndClient>;

// First, every fleetd prepares its part before anything runs. Then node 0 is launched and reports
// where its rendezvous listens. Then the other nodes are launched. If a node refuses or disappears
// before the job runs, everything is undone, unless the job accepts fewer nodes.
// Once the job runs, the launchers alone detect lost nodes and decide who continues and what the
// verdict is. The client waits until all reachable launchers have ended. It only stops launchers
// that cannot know: those that never joined, and those that continue after the others have reported
// the verdict.
class RemoteJob {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // kAttach: the job already runs, and continues without this client.
  enum class Mode { kStart, kDetach, kAttach };
  struct Options {
    Mode mode = Mode::kStart;
    std::string node_prefix = "fleetd on ";  // name of the server on a node, for messages
    int min_nodes = 0;                       // least number of nodes; 0: all
    bool restarts = false;                   // the job may continue without a lost node
    std::chrono::milliseconds grace{0};
    std::chrono::milliseconds start_timeout{0};  // for all nodes to prepare their part; 0: none
    bool shows_output = false;  // the console of its messages shows the ranks' output, both streams
  };
  // names: the nodes' names for messages.
  RemoteJob(std::vector<std::string> names, Options options);

  std::vector<RemoteJobAction> step(const RemoteJobEvent& event, Time now);
  // The time for the next TimePassed; Time::max(): none is needed.
  Time next_deadline() const { return deadline_; }

 private:
  enum class State { kPending, kPrepared, kLaunched, kRunning, kDetached, kEnded };

  State& at(int node) { return states_[static_cast<size_t>(node)]; }
  const std::string& name(int node) const { return names_[static_cast<size_t>(node)]; }
  int count(State state) const;
  bool any(State state) const { return count(state) > 0; }
  bool launched(int node) const;
  int nodes() const { return static_cast<int>(states_.size()); }
  // Whether enough nodes are left.
  bool has_min_nodes() const { return nodes() - count(State::kEnded) >= min_nodes_; }

  void on(const RequestsSent&, Time now);
  void on(const FromFleetd& from, Time now);
  void on(const FleetdLost& lost, Time now);
  void on(const SignalReceived& signal, Time now);
  void on(const DetachRequested&, Time now);
  void on(const TimePassed&, Time now);
  void on_prepared(int node);
  void on_refused(int node, const Error& error);
  void on_hosting(int node, int rdzv_port);
  void on_running(int node, int nnodes);
  void on_detached(int node);
  void on_ended(int node, const wire::JobEnded& ended, Time now);

  void launch_if_all_prepared();
  void handle_lost(int node, State was, const Error& why, Time now);
  void handle_silent_nodes(Time now);
  // Releases the nodes where the job has not started, and stops it on the others.
  void abort_job(int exit_code, int signal);
  void send_user_signal(int number);
  void leave(int exit_code);
  void end_if_done();
  std::string failure() const;  // the job's, for its user; "": none to print

  void send(int node, wire::ClientMessage message) {
    actions_.push_back(ToFleetd{node, std::move(message)});
  }
  void launch(int node, int rdzv_port);
  void stop(int node, int signal, bool kill);
  void close_session(int node) { actions_.push_back(CloseSession{node}); }
  void show(ShowLine::Kind kind, std::string text) {
    actions_.push_back(ShowLine{kind, std::move(text)});
  }
  void end(int exit_code, bool detached = false);

  const std::vector<std::string> names_;
  const Options options_;
  const int min_nodes_;
  std::vector<State> states_;
  std::vector<RemoteJobAction> actions_;  // actions of this step
  Time deadline_ = Time::max();
  Time prepared_by_ = Time::max();
  bool formed_;  // the rendezvous has completed, and ranks have run
  bool detaching_ = false, ended_ = false, aborting_ = false;
  int code_ = -1;                       // exit code of the job, if known
  int signals_ = 0, first_signal_ = 0;  // stop signals to the client
  std::optional<wire::JobVerdict> verdict_;
};

// --- its client: sessions with all nodes, their output, and signals ---

struct RemoteNode {
  std::string name;
  wire::ClientMessage initial_request;  // the first request of the session
  // Calls `connected` once, at once or later on the loop's thread; with nullptr if there is no
  // connection.
  using Connected = std::function<void(std::shared_ptr<grpc::Channel>)>;
  std::function<void(EventLoop&, const Connected& connected)> connect;
  // Why the session ended: it could not connect, or broke after it was `connected`.
  std::function<Error(const grpc::Status&, bool connected)> explain;
};

// Runs the client. Call it from a process without other threads; signals are forwarded to the job.
// `attached_to`: the id of the job that a person watches at this terminal (attach_terminal.h).
EndClient run_job_client(std::vector<RemoteNode> nodes, RemoteJob::Options options,
                         std::string attached_to = {});
// The part of the configuration that concerns the client.
RemoteJob::Options remote_job_options(const LaunchConfig& config);

}  // namespace fleet
