#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/proc_number.h"
#include "node/channel.h"
#include "node/control_socket.h"
#include "node/guarded_rank.h"
#include "node/guardian.h"
#include "node/guardian_trace.h"
#include "node/guardian_watchdog.h"
#include "node/hang_checks.h"
#include "node/job_cgroup.h"
#include "node/job_logs.h"
#include "node/process_tree.h"
#include "node/progress_collector.h"
#include "node/rank_stacks.h"
#include "node/rank_starter.h"
#include "node/rank_stops.h"
#include "node/spawn.h"
#include "transport/event_loop.h"
#include "transport/validate.h"

namespace fleet {

namespace {

constexpr std::chrono::seconds kInspectInterval{1};
constexpr int kKeptFree = 8;  // descriptors

class Guardian {
 public:
  // The ranks' signal mask and descriptor limit; the job's name.
  Guardian(UniqueFd socket, UniqueFd alive, const sigset_t& original, const rlimit& descriptors,
           const std::string& job)
      : signals_(loop_, {SIGCHLD}),
        reaper_(loop_, {}, [this](std::string stuck) { on_all_gone(std::move(stuck)); }),
        grace_(loop_),
        inspect_timer_(loop_),
        watchdog_(loop_, std::move(alive), rank_environment_prefix(own_proc_number()), job,
                  {[this](pid_t pid) { reaper_.exclude(pid); },
                   [this](int signal) { pass_signal(signal, true); }}),
        stacks_(loop_,
                [this](Stacks stacks) {
                  channel_.send(envelope(&wire::GuardianEvent::mutable_stacks, std::move(stacks)));
                }),
        logs_(loop_),
        starter_(original, descriptors, rank_descriptors_, logs_),
        channel_(
            loop_, std::move(socket),
            [this](wire::GuardianCommand command) { on_command(command); },
            [this] { on_launcher_lost(); }) {
    for (const int signal : passed_signals()) signals_.add(signal);
    signals_.on_signal(
        [this](int signal) { signal == SIGCHLD ? reap() : pass_signal(signal, false); });
  }

  void run() { loop_.run(); }

 private:
  void on_command(wire::GuardianCommand& command) {
    switch (command.kind_case()) {
      case wire::GuardianCommand::kSpawn:
        return start_ranks(command.mutable_spawn());
      case wire::GuardianCommand::kStop:
        return stop_ranks(command.stop());
      case wire::GuardianCommand::kKill:
        return kill_all();
      case wire::GuardianCommand::kSignal:
        return signal_ranks(command.signal().signal());
      case wire::GuardianCommand::kCollectStacks:
        return stacks_.collect(command.collect_stacks(), ranks_);
      case wire::GuardianCommand::kServiceBytes:
        return send_to_rank(command.service_bytes());
      case wire::GuardianCommand::kTrace:
        return answer_trace(command.trace());
      case wire::GuardianCommand::kPing:
        return channel_.send(envelope(&wire::GuardianEvent::mutable_pong));
      case wire::GuardianCommand::kSuspend:
        return suspend_ranks();
      case wire::GuardianCommand::kResume:
        return resume_ranks();
      case wire::GuardianCommand::kReplace:
        return replace_rank(command.replace());
      case wire::GuardianCommand::KIND_NOT_SET:
        return;  // never: take_frame() refuses it
    }
  }

  // Takes the commands out of `spawn`.
  void start_ranks(wire::SpawnRanks* spawn) {
    if (!ranks_.empty() && !announced_) {
      spdlog::error("ranks of an earlier start are still running; not starting new ones");
      return;
    }
    ranks_.clear();
    gone_ = announced_ = false;
    still_there_.clear();
    oom_.begin();
    hang_checks_.begin(std::chrono::milliseconds(spawn->settings().hang_timeout_ms()),
                       kInspectInterval);
    trace_.begin_generation(spawn->generation());
    logs_.begin(*spawn);
    progress_.begin(*spawn);
    ranks_.reserve(static_cast<size_t>(spawn->ranks_size()));
    // Reserved for finding and killing ranks if their pipes use up all other descriptors.
    std::vector<UniqueFd> kept_free;
    for (int i = 0; i < kKeptFree; ++i) {
      kept_free.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    for (wire::RankCommand& given : *spawn->mutable_ranks()) {
      GuardedRank& rank = ranks_.emplace_back();
      rank.command = std::move(given);
      start_rank(rank);
    }
    cgroup_tried_ = stop_sent_ = killed_ = false;
    inspect_ranks();
    watchdog_.start_soon();
    end_if_done();
  }

  void start_rank(GuardedRank& rank) {
    UniqueFd service;
    channel_.send(envelope(&wire::GuardianEvent::mutable_started, starter_.start(&rank, &service)));
    if (rank.ended) return;
    trace_.note(LauncherEvent::STARTED, &rank, rank.pid, monotonic_ns());
    order_.watch(rank.pid);
    if (service) listen_to(rank, std::move(service));
    hang_checks_.watch(&rank);
  }

  // In its place: the same command and files, and the others are not touched.
  void replace_rank(const wire::ReplaceRank& replace) {
    for (GuardedRank& rank : ranks_) {
      if (rank.command.local_rank() != replace.local_rank() || !rank.kept_place) continue;
      rank = successor_of(std::move(rank), replace.ordinal());
      start_rank(rank);
    }
    inspect_ranks();
    end_if_done();
  }

  // People find these processes next to the launcher and signal any of them.
  void pass_signal(int signal, bool by_watchdog) {
    wire::GuardianEvent event;
    event.mutable_signal()->set_signal(signal);
    event.mutable_signal()->set_by_watchdog(by_watchdog);
    channel_.send(event);
  }

  // --- Ctrl-Z. The guardian itself continues: it must notice the launcher's end. ---

  std::vector<pid_t> groups_of_ranks() const {
    std::vector<pid_t> groups;
    for (const GuardedRank& rank : ranks_) {
      if (!rank.ended) groups.push_back(rank.pid);
    }
    return groups;
  }

  void suspend_ranks() {
    suspended_ = true;
    inspect_timer_.cancel();
    signal_all(groups_of_ranks(), {watchdog_.pid()}, SIGSTOP);
    channel_.send(envelope(&wire::GuardianEvent::mutable_suspended));
  }

  void resume_ranks() {
    if (!std::exchange(suspended_, false)) return;
    signal_all(groups_of_ranks(), {watchdog_.pid()}, SIGCONT);
    inspect_ranks();
  }

  // Not to their process groups: a helper without a handler for the signal would die of it.
  void signal_ranks(int signal) {
    trace_.note(LauncherEvent::SIGNAL, nullptr, signal, monotonic_ns());
    for (const GuardedRank& rank : ranks_) {
      if (!rank.ended) ::kill(rank.pid, signal);
    }
  }

  void listen_to(GuardedRank& rank, UniqueFd socket) {
    const int local_rank = rank.command.local_rank();
    rank.service = std::make_unique<ByteStream>(
        loop_, std::move(socket),
        [this, local_rank](std::string_view bytes) {
          wire::GuardianEvent event;
          event.mutable_service_bytes()->set_local_rank(local_rank);
          event.mutable_service_bytes()->set_bytes(bytes.data(), bytes.size());
          channel_.send(event);
        },
        [] {});  // the rank has closed it or ended, which is noticed elsewhere
  }

  void send_to_rank(const wire::ServiceBytes& message) {
    for (GuardedRank& rank : ranks_) {
      if (rank.command.local_rank() == message.local_rank() && rank.service)
        rank.service->send(message.bytes());
    }
  }

  // Samples the ranks' progress while they run.
  void inspect_ranks() {
    const bool any = std::any_of(ranks_.begin(), ranks_.end(),
                                 [](const GuardedRank& rank) { return !rank.ended; });
    if (!any) return;
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_progress_) {
      if (next_progress_ != std::chrono::steady_clock::time_point()) enter_cgroup();
      next_progress_ = now + kInspectInterval;
      trace_.sample_clocks();
      send_progress();
    }
    for (RankStall& stall : hang_checks_.check(ranks_, progress_, now)) {
      channel_.send(envelope(&wire::GuardianEvent::mutable_stalled, std::move(stall)));
    }
    inspect_timer_.after(hang_checks_.interval(), [this] { inspect_ranks(); });
  }

  // Not while the job starts, because the kernel takes time to move a process. Processes that the
  // ranks fork at that time are moved too.
  void enter_cgroup() {
    if (std::exchange(cgroup_tried_, true)) return;
    if (!cgroup_.make()) return spdlog::debug("no cgroup for this job: {}", cgroup_.why());
    cgroup_.take_descendants({watchdog_.pid()});
  }

  void send_progress() {
    progress_.read_reports(ranks_);
    trace_.note_first_signs(ranks_, progress_);
    StepReport changes = progress_.take_changes(ranks_);
    if (changes.ranks().empty() && changes.servers().empty()) return;
    channel_.send(envelope(&wire::GuardianEvent::mutable_progress, std::move(changes)));
  }

  // A signal of anyone has stopped a child, or continued it.
  void on_child_stopped(pid_t pid, int status) {
    const auto rank = std::ranges::find(ranks_, pid, &GuardedRank::pid);
    if (rank == ranks_.end() || rank->ended) return;
    const int signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
    trace_.note(signal != 0 ? LauncherEvent::STOPPED : LauncherEvent::CONTINUED, &*rank,
                signal != 0 ? signal : SIGCONT, monotonic_ns());
    if (!is_terminal_stop(signal)) return;
    wire::GuardianEvent event;
    event.mutable_stopped()->set_local_rank(rank->command.local_rank());
    event.mutable_stopped()->set_signal(signal);
    channel_.send(event);
  }

  void answer_trace(const TraceRequest& request) {
    trace_.note_first_signs(ranks_, progress_);
    channel_.send(envelope(&wire::GuardianEvent::mutable_trace, trace_.answer(request, ranks_)));
  }

  void stop_ranks(const StopCommand& stop) {
    if (ranks_.empty()) return kill_all();  // stopped before the start: report it soon
    reap();                                 // ranks that have ended by now ended by themselves
    if (gone_) return;  // a late stop: the next generation has its own grace time
    stop_sent_ = true;
    suspended_ = false;
    for (GuardedRank& rank : ranks_) rank.kept_place = false;
    trace_.note(LauncherEvent::SIGNAL, nullptr, stop.signal(), monotonic_ns());
    for (const GuardedRank& rank : ranks_) {
      if (!rank.ended) ::kill(-rank.pid, stop.signal());
    }
    // A stopped process (SIGSTOP) would not handle the signal.
    for (const GuardedRank& rank : ranks_) {
      if (!rank.ended) ::kill(-rank.pid, SIGCONT);
    }
    const int grace_ms = stop.grace_ms();
    grace_.after(std::chrono::milliseconds(grace_ms), [this, grace_ms] {
      spdlog::warn("the grace time of {} s has expired: killing the remaining processes",
                   static_cast<double>(grace_ms) / 1000);
      kill_all();
    });
    end_if_done();
  }

  void reap() {
    int status = 0;
    for (const pid_t pid : order_.take()) {
      if (::waitpid(pid, &status, WNOHANG) == pid) on_child_ended(pid, status);
    }
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
      const bool ended = WIFEXITED(status) || WIFSIGNALED(status);
      ended ? on_child_ended(pid, status) : on_child_stopped(pid, status);
    }
    reaper_.on_children_changed();
    end_if_done();
  }

  void on_child_ended(pid_t pid, int status) {
    watchdog_.on_child_ended(pid);
    for (GuardedRank& rank : ranks_) {
      if (rank.pid == pid && !rank.ended) on_rank_ended(rank, status);
    }
  }

  void on_rank_ended(GuardedRank& rank, int status) {
    const int64_t now = monotonic_ns();
    rank.ended = true;
    rank.log->drain();
    send_progress();
    progress_.on_rank_ended(rank, status == 0);
    RankExit ended = exit_of(rank, status, oom_);
    ended.set_at_ns(now);
    // A SIGKILL that we did not send is not a consequence of our stop request. The kernel may take
    // longer to end the process than other ranks to notice.
    ended.set_killed_by_us(killed_ || (stop_sent_ && ended.signal() != SIGKILL));
    const bool ending = stop_sent_ || killed_ || launcher_lost_;
    rank.kept_place = status != 0 && !ending && can_be_replaced(rank);
    if (rank.kept_place) {
      ::kill(-rank.pid, SIGKILL);  // what it has started
      if (const auto seen = progress_.of(rank)) rank.steps = seen->step;
    }
    ended.set_replaceable(rank.kept_place);
    cut(&ended);
    trace_.on_rank_ended(rank, status, now);
    channel_.send(envelope(&wire::GuardianEvent::mutable_ended, std::move(ended)));
  }

  void end_if_done() {
    if (gone_ || (ranks_.empty() && !launcher_lost_)) return;
    for (const GuardedRank& rank : ranks_) {
      if (!rank.ended || rank.kept_place) return;
    }
    kill_all();
  }

  void kill_all() {
    killed_ = true;
    for (GuardedRank& rank : ranks_) rank.kept_place = false;
    suspended_ = false;
    cgroup_.kill();
    // Without a usable /proc, the reaper finds no process.
    for (const pid_t group : groups_of_ranks()) ::kill(-group, SIGKILL);
    grace_.cancel();
    watchdog_.cancel_start();
    reaper_.start();
  }

  void on_all_gone(std::string stuck) {
    still_there_ = std::move(stuck);
    gone_ = true;
    grace_.cancel();
    logs_.finish([this] { announce(); });
    if (launcher_lost_) announce();  // even if our output has no reader
  }

  void announce() {
    if (announced_) return;
    announced_ = true;
    if (launcher_lost_) {
      remove_sockets_of(launcher_);  // it has ended without removing them
      return loop_.stop();
    }
    wire::GuardianEvent event;
    event.mutable_all_gone()->set_stuck(still_there_);
    event.mutable_all_gone()->set_output_lost(logs_.report_lost_output());
    channel_.send(event);
  }

  void on_launcher_lost() {
    if (launcher_lost_) return;
    launcher_lost_ = true;
    if (announced_) return loop_.stop();
    kill_all();
  }

  RankDescriptors rank_descriptors_;  // first: it takes the lowest descriptors
  EventLoop loop_;
  LoopSignals signals_;
  ProcessTreeReaper reaper_;
  LoopTimer grace_;
  LoopTimer inspect_timer_;
  GuardianWatchdog watchdog_;
  RankStacks stacks_;
  JobLogs logs_;
  RankStarter starter_;
  ProgressCollector progress_;
  HangChecks hang_checks_;
  GuardianTrace trace_;
  OomDetector oom_;
  ExitOrder order_;
  JobCgroup cgroup_;
  Channel<wire::GuardianEvent, wire::GuardianCommand> channel_;
  std::vector<GuardedRank> ranks_;
  std::chrono::steady_clock::time_point next_progress_{};
  std::string still_there_;
  bool gone_ = false, announced_ = false;                           // the ranks are
  bool cgroup_tried_ = false, stop_sent_ = false, killed_ = false;  // those started last
  bool launcher_lost_ = false;
  bool suspended_ = false;  // the ranks, by Ctrl-Z
  const pid_t launcher_ = ::getppid();
};

}  // namespace

void run_guardian_loop(UniqueFd socket, UniqueFd alive, const sigset_t& original,
                       const rlimit& descriptors, const std::string& job) {
  Guardian guardian(std::move(socket), std::move(alive), original, descriptors, job);
  // All other signals stay blocked.
  sigset_t unblocked;
  ::sigemptyset(&unblocked);
  ::sigaddset(&unblocked, SIGCHLD);
  for (const int signal : passed_signals()) ::sigaddset(&unblocked, signal);
  ::sigprocmask(SIG_UNBLOCK, &unblocked, nullptr);
  guardian.run();
}

}  // namespace fleet
