#include "node/agent.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "node/channel.h"
#include "node/control_socket.h"
#include "node/end_command.h"
#include "node/guardian.h"
#include "node/job_cgroup.h"
#include "node/job_questions.h"
#include "node/job_record.h"
#include "node/launcher_signals.h"
#include "node/live_reporter.h"
#include "node/proc_view.h"
#include "node/process_tree.h"
#include "node/rank_stops.h"
#include "node/start_check.h"
#include "node/supervision.h"
#include "transport/control_messages.h"

namespace fleet {

namespace {

// For the last messages of a rendezvous that ends while the job continues elsewhere.
constexpr std::chrono::milliseconds kStepDown{500};
// The record and the control socket are looked for this often.
constexpr std::chrono::minutes kKeepInterval{1};

// Passes events to Supervision and carries out its actions; Supervision makes every decision.
class Agent {
 public:
  explicit Agent(AgentPlan plan)
      : plan_(std::move(plan)),
        rank_mark_(rank_environment_prefix(ProcView::own().number_of(plan_.guardian.pid))),
        record_(plan_.record),
        supervision_(plan_.grace, plan_.messages),
        signals_(loop_, plan_.stop_signals,
                 {.on_stop = [this](int signal, auto received) { on_stop(signal, received); },
                  .on_suspend = [this] { suspend(); },
                  .on_job_signal = [this](int signal) { signal_job(signal); },
                  .on_node_signal = [this](int signal) { signal_ranks(signal); },
                  .on_starter_lost = [this] { on_starter_lost(); },
                  .on_child = [this] { reap(); }}),
        keep_timer_(loop_),
        reaper_(loop_, plan_.other_children,
                [this](std::string stuck) {
                  wire::GuardianEvent event;
                  event.mutable_all_gone()->set_stuck(std::move(stuck));
                  on_guardian(event);
                }),
        channel_(
            loop_, std::move(plan_.guardian.socket),
            [this](const wire::GuardianEvent& event) { on_guardian(event); },
            [this] { on_guardian_closed(); }),
        monitor_(
            loop_, [this] { channel_.send(envelope(&wire::GuardianCommand::mutable_ping)); },
            [this] { on_guardian_hung(); }),
        live_(loop_,
              [this](StepReport report) {
                client_->send(envelope(&wire::NodeMessage::mutable_steps, std::move(report)));
              }),
        control_(loop_,
                 [this](const wire::ControlRequest& request, ControlSocket::Reply reply) {
                   on_request(request, std::move(reply));
                 }),
        questions_(loop_, [this](wire::NodeMessage message) { client_->send(std::move(message)); }),
        check_(loop_, plan_.check),
        client_(RendezvousClient::make(plan_.client, [this](RendezvousEvent event) {
          // On one of gRPC's threads.
          loop_.post([this, event = std::move(event)]() mutable { on_rendezvous(event); });
        })) {}

  int run() {
    signals_.start();
    // The reader of our output may be gone: that must not end the job.
    ::signal(SIGPIPE, SIG_IGN);
    keep_findable();
    if (plan_.control_pipe) signals_.listen_to(std::move(plan_.control_pipe));
    if (plan_.observe) {
      observer_ = plan_.observe(loop_, [this](std::function<void(const LiveReport&, int)> done) {
        ask_live({}, [this, done = std::move(done)](const LiveReport& report) {
          done(report, record_.record().node_rank());
        });
      });
    }
    client_->start(plan_.join);
    // Unblock only now: existing threads keep all signals blocked, so signals arrive in this
    // thread.
    ::pthread_sigmask(SIG_SETMASK, &plan_.signal_mask, nullptr);
    loop_.run_until_stopped();
    service_.reset();
    channel_.close();  // ends the guardian; in the meantime:
    client_->leave();
    if (plan_.server) plan_.server->stop();
    end_.set_code(exit_code_);
    record_.end(std::move(end_), !logs_hang_);
    const bool may_wait = !logs_hang_ || !stuck_known_;
    if (!guardian_reaped_ && may_wait) ::waitpid(plan_.guardian.pid, nullptr, 0);
    report_leftovers();
    if (exit_code_ == 0 && plan_.succeeded) plan_.succeeded();
    run_end_command();
    return exit_code_;
  }

 private:
  // Last: the other nodes, and commands that ask for this job, do not wait for it.
  void run_end_command() {
    const JobRecord& job = record_.record();
    if (plan_.end_command.empty() || !job.has_verdict()) return;
    const Verdict& verdict = job.verdict().verdict();
    if (!runs_end_command(verdict, plan_.server != nullptr, job.node_rank())) return;
    fleet::run_end_command({.command = plan_.end_command,
                            .input = verdict_file_text(job),
                            .log = logs_hang_ ? "" : job.log_dir() + kEndCommandLog,
                            .signal_mask = plan_.signal_mask,
                            .limits = plan_.guardian.limits,
                            .stop_signals = plan_.stop_signals});
  }

  // The guardian has ended: its remaining children are ours now.
  void report_leftovers() {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> left = descendants(plan_.other_children);
    spdlog::debug("{} processes left", left.size());
    remove_stale_job_cgroups();  // a killed guardian leaves its cgroup
    if (stuck_known_) return;
    // The first process of a pid namespace inherits orphans of others (kubectl exec).
    const bool of_others = ::getpid() == 1;
    const std::vector<pid_t> own =
        of_others ? processes_with_environment(rank_mark_) : std::vector<pid_t>();
    for (const pid_t pid : left) {
      const bool is_ours = !of_others || std::ranges::find(own, pid) != own.end();
      if (is_ours) spdlog::error("left behind: {}", describe_process(pid));
    }
  }

  // --- events ---
  void note_stop(int signal) {
    if (!record_.record().has_verdict() && end_.stopped_by() == 0) end_.set_stopped_by(signal);
  }

  void on_stop(int signal, std::chrono::steady_clock::time_point received) {
    note_stop(signal);
    step(stop_request(signal), received);
  }

  void on_starter_lost() {
    note_stop(SIGHUP);
    step(StarterLost{});
  }

  void suspend() {
    const bool several = (world_ && world_->nodes_size() > 1) || plan_.join.job().nnodes() > 1;
    step(SuspendRequest{several});
  }

  void signal_job(int signal) {
    wire::NodeMessage message;
    message.mutable_signal()->set_signal(signal);
    client_->send(std::move(message));
  }

  void signal_ranks(int signal) {
    wire::GuardianCommand command;
    command.mutable_signal()->set_signal(signal);
    channel_.send(command);
  }

  void reap() {
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
      if (pid == plan_.guardian.pid) guardian_reaped_ = true;
    }
    reaper_.on_children_changed();
  }

  // A logout removes the session's runtime folder, with the record and the control socket.
  void keep_findable() {
    keep_timer_.after(kKeepInterval, [this] {
      record_.keep();
      control_.keep();
      keep_findable();
    });
  }

  void on_rendezvous(RendezvousEvent& event) {
    if (check_.hold(event)) return;
    if (auto* message = std::get_if<wire::HostMessage>(&event)) on_host(*message);
    if (auto* refusal = std::get_if<Refusal>(&event)) step(std::move(*refusal));
    if (const auto* assignment = std::get_if<Assignment>(&event)) on_assignment(*assignment);
    if (auto* lost = std::get_if<HostLost>(&event)) step(std::move(*lost));
    if (const auto* turn = std::get_if<TakeOver>(&event)) on_take_over(*turn);
    if (std::holds_alternative<StepDown>(event)) on_step_down();
  }

  void on_host(wire::HostMessage& message) {
    switch (message.kind_case()) {
      case wire::HostMessage::kProgress:
        return spdlog::warn("{}", message.progress().line());
      case wire::HostMessage::kPeer:
        if (message.peer().kind() == PeerEvent::STRAGGLER ||
            message.peer().kind() == PeerEvent::BOTTLENECK) {
          return spdlog::warn("{}", message.peer().line());
        }
        return spdlog::info("{}", message.peer().line());
      case wire::HostMessage::kSignal:
        return signal_ranks(message.signal().signal());
      case wire::HostMessage::kReport:
        return questions_.on_stacks(message.report());
      case wire::HostMessage::kLive:
        return questions_.on_live(message.live());
      case wire::HostMessage::kTraceRequest:
        return channel_.send(
            envelope(&wire::GuardianCommand::mutable_trace, message.trace_request()));
      case wire::HostMessage::kTraceAnswer:
        return questions_.on_trace(std::move(*message.mutable_trace_answer()));
      default:
        return step(std::move(message));
    }
  }

  void on_take_over(const TakeOver& turn) {
    try {
      plan_.server = plan_.take_over(turn);
      spdlog::warn("this node now hosts the rendezvous");
      record_.on_hosting(plan_.server->network_address());
      client_->follow(plan_.server->local_address(), plan_.server->host());
    } catch (const Error& error) {
      step(Refusal{error});
    }
  }

  void on_step_down() {
    if (!plan_.server) return;
    plan_.server->stop(kStepDown);
    plan_.server.reset();
    spdlog::warn("this node no longer hosts the rendezvous");
  }

  void on_request(const wire::ControlRequest& request, ControlSocket::Reply reply) {
    if (!world_ && !request.has_stop()) {
      const Error forming(ErrorCode::kNotFound, "the job is still forming");
      return reply(envelope(&wire::ControlReply::mutable_failure, to_wire(forming)));
    }
    switch (request.kind_case()) {
      case wire::ControlRequest::kStacks:
        return questions_.ask_stacks(request.stacks(), std::move(reply));
      case wire::ControlRequest::kLive:
        return ask_live(request.live(), [reply = std::move(reply)](const LiveReport& report) {
          reply(envelope(&wire::ControlReply::mutable_live, report));
        });
      case wire::ControlRequest::kTrace:
        return questions_.ask_trace(request.trace(), world_->nodes_size(), std::move(reply));
      case wire::ControlRequest::kStop:
        note_stop(request.stop().signal());
        step(request.stop());
        return reply(envelope(&wire::ControlReply::mutable_accepted));
      case wire::ControlRequest::KIND_NOT_SET:
        return;  // ControlSocket refuses it
    }
  }

  void ask_live(const wire::LiveRequest& request, JobQuestions::OnLive done) {
    if (!world_) return done({});
    questions_.ask_live(request, std::move(done));
  }

  void on_assignment(const Assignment& assignment) {
    world_ = assignment.world;
    node_ = assignment.node();
    if (!check_) return start_ranks(assignment);
    step(Assigned{});
    check_.run(assignment, [this, assignment](StartCheck::Outcome outcome) {
      on_checked(assignment, std::move(outcome));
    });
  }

  void on_checked(const Assignment& assignment, StartCheck::Outcome outcome) {
    const bool failed = !outcome.failed.empty();
    if (failed) step(CheckFailed{std::move(outcome.failed)});
    if (failed || !outcome.held.empty()) {  // this generation is over
      for (RendezvousEvent& event : outcome.held) on_rendezvous(event);
      return;
    }
    if (!outcome.error) return start_ranks(assignment);
    const ErrorCode code = outcome.error->code();
    const bool already_reported = code == ErrorCode::kPeerLost || code == ErrorCode::kStale;
    if (!already_reported) step(Refusal{*outcome.error});
  }

  void start_ranks(const Assignment& assignment) {
    wire::SpawnRanks spawn;
    try {
      service_.reset();  // the preceding generation's
      if (plan_.serve) {
        service_ = plan_.serve(loop_, assignment, [this](int local_rank, std::string bytes) {
          wire::GuardianCommand answer;
          answer.mutable_service_bytes()->set_local_rank(local_rank);
          answer.mutable_service_bytes()->set_bytes(std::move(bytes));
          channel_.send(answer);
        });
      }
      spawn = plan_.prepare(assignment);
    } catch (const Error& error) {
      return step(Refusal{error});  // the other nodes see this node leave
    }
    record_.on_assignment(assignment, spawn);
    live_.begin(assignment);
    progress_.begin();
    step(GenerationBegins{assignment, std::move(spawn)});
  }

  void on_guardian(const wire::GuardianEvent& event) {
    if (event.has_service_bytes()) {
      const wire::ServiceBytes& from = event.service_bytes();
      return service_ ? service_->on_rank_bytes(from.local_rank(), from.bytes()) : void();
    }
    if (event.has_trace()) return send_trace(event.trace());
    if (event.has_pong()) return monitor_.on_pong();
    if (event.has_signal()) return signals_.on_passed(event.signal());
    if (event.has_started() && event.started().error().empty()) {
      const wire::RankStarted& started = event.started();
      spdlog::debug("local rank {} runs as pid {}", started.local_rank(), started.pid());
      record_.on_rank_started(started.local_rank(), started.pid());
      live_.on_rank_started(started.local_rank(), started.pid());
    }
    if (event.has_progress()) note_progress(event.progress());
    if (event.has_all_gone()) {
      all_gone_ = true;
      monitor_.stop();
      live_.end();
      stuck_known_ = !event.all_gone().stuck().empty();
      output_lost_ = event.all_gone().output_lost();
    }
    step(event);
  }

  // The guardian knows its ranks by their local ranks, and this node's clock.
  void send_trace(TraceAnswer answer) {
    if (answer.has_node()) {
      wire::NodeTrace& trace = *answer.mutable_node();
      for (TracedRank& rank : *trace.mutable_ranks()) {
        if (node_) rank.set_server(is_server(*node_, rank.local_rank()));
      }
      if (node_) trace.set_hostname(node_->hostname());
      const int64_t now = monotonic_ns();
      trace.set_own_ns(now);
      if (const auto host = client_->host_clock(now)) {
        trace.set_host_ns(host->host_ns);
        trace.set_error_ns(host->error_ns);
      }
    }
    client_->send(envelope(&wire::NodeMessage::mutable_trace_answer, std::move(answer)));
  }

  void note_progress(const StepReport& report) {
    const bool write = progress_.update(report, std::chrono::steady_clock::now(), unix_seconds());
    record_.on_progress(progress_.progress(), write);
  }

  void on_guardian_closed() {
    monitor_.stop();
    step(GuardianLost{});
    if (!all_gone_) reaper_.start();
  }

  // Does not wait for its end: a process that waits for a dead file server may survive SIGKILL.
  void on_guardian_hung() {
    logs_hang_ = true;
    if (!guardian_reaped_) ::kill(plan_.guardian.pid, SIGKILL);
    channel_.close();
    step(GuardianLost{.hung = true});
    if (!all_gone_) reaper_.start();
  }

  // --- actions ---
  void step(SupervisionEvent event,
            std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
    for (SupervisionAction& action : supervision_.step(std::move(event), now)) {
      std::visit([this](auto& one) { carry_out(one); }, action);
    }
  }
  void carry_out(wire::NodeMessage& message) { client_->send(std::move(message)); }
  void carry_out(wire::GuardianCommand& command) {
    if (command.has_spawn()) all_gone_ = false;
    if (command.has_stop()) monitor_.start(std::chrono::milliseconds(command.stop().grace_ms()));
    if (command.has_kill()) monitor_.start(std::chrono::milliseconds(0));
    if (command.has_collect_stacks()) {
      command.mutable_collect_stacks()->set_folder(record_.record().log_dir());
    }
    channel_.send(command);
  }
  void carry_out(const ShowLine& line) {
    if (line.kind == ShowLine::kVerdict && !plan_.print_verdict) return;
    const bool warning = line.kind == ShowLine::kWarning;
    spdlog::log(warning ? spdlog::level::warn : spdlog::level::err, "{}", line.text);
  }
  void carry_out(const RecordVerdict& record) {
    const Verdict& verdict = record.verdict;
    record_.on_verdict(job_verdict(verdict, world_.get(), unix_seconds(), plan_.messages.brief));
    // A success is not worth the milliseconds that the disk takes.
    end_.set_verdict_path(write_verdict_file(record_.record(), !succeeded(verdict), &logs_hang_));
    if (verdict.kind() == Verdict::STOPPED) end_.set_stopped_by(verdict.signal());
  }
  void carry_out(const SuspendLauncher&) {
    suspend_self();
    // The user's fg continues the process group, kill -CONT this process alone.
    loop_.post([this] { step(LauncherContinued{}); });
  }
  void carry_out(const EndLauncher& end) {
    // The guardian has reported lost output. A failure of the job keeps its own code.
    exit_code_ = end.exit_code == 0 && output_lost_ ? 1 : end.exit_code;
    loop_.stop();
  }

  AgentPlan plan_;
  const std::string rank_mark_;  // in the environment of this job's processes
  JobRecordFile record_;
  JobInfo end_;
  std::shared_ptr<const World> world_;
  std::optional<wire::Node> node_;  // this one, in world_
  EventLoop loop_;
  Supervision supervision_;
  LauncherSignals signals_;
  LoopTimer keep_timer_;
  ProcessTreeReaper reaper_;
  Channel<wire::GuardianCommand, wire::GuardianEvent> channel_;
  GuardianMonitor monitor_;  // while the ranks must end
  std::unique_ptr<RankService> service_;
  LiveReporter live_;
  ProgressRecord progress_;
  ControlSocket control_;
  JobQuestions questions_;
  std::shared_ptr<void> observer_;
  int exit_code_ = 1;
  bool guardian_reaped_ = false, all_gone_ = false, stuck_known_ = false;
  bool output_lost_ = false;
  bool logs_hang_ = false;  // whatever touches the log folder may never return
  StartCheck check_;
  std::shared_ptr<RendezvousClient> client_;  // last: its threads post to the loop
};

}  // namespace

int run_agent(AgentPlan plan) { return Agent(std::move(plan)).run(); }

}  // namespace fleet
