#include "node/launcher_signals.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "node/guardian.h"

namespace fleet {

LauncherSignals::LauncherSignals(EventLoop& loop, std::vector<int> stop_signals, Handlers handlers)
    : loop_(loop),
      stop_signals_(std::move(stop_signals)),
      handlers_(std::move(handlers)),
      signals_(loop) {}

void LauncherSignals::start() {
  signals_.add(SIGCHLD);
  std::vector<int> handled = stop_signals_;
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTSTP}) {
    if (!stops(signal)) handled.push_back(signal);
  }
  for (const int signal : handled) {
    if (is_ignored(signal)) continue;
    signals_.add(signal);
    handled_.insert(signal);
  }
  signals_.on_signal([this](int signal) {
    signal == SIGCHLD ? handlers_.on_child() : on_signal(signal, SignalCopies::Receiver::kLauncher);
  });
}

bool LauncherSignals::stops(int signal) const {
  return std::ranges::find(stop_signals_, signal) != stop_signals_.end();
}

void LauncherSignals::on_signal(int signal, SignalCopies::Receiver receiver) {
  const Time now = std::chrono::steady_clock::now();
  if (signal == SIGTSTP && !stops(signal)) return handlers_.on_suspend();
  if (!copies_.is_request(signal, receiver, now)) return;
  if (stops(signal)) return report_stop(signal, now);
  handlers_.on_job_signal(signal);  // its meaning is between the user and the program
}

// After the copies: SIGINTs to this process within this time are one.
void LauncherSignals::report_stop(int signal, Time received) {
  const auto timer = std::make_shared<LoopTimer>(loop_);
  timer->after(SignalCopies::kDelivery,
               [this, signal, received, timer] { handlers_.on_stop(signal, received); });
}

// As if it had been sent to this process: a signal that it does not handle has its usual effect.
void LauncherSignals::on_passed(const wire::SignalReceived& received) {
  if (!handled_.contains(received.signal())) {
    ::kill(::getpid(), received.signal());
  } else {
    on_signal(received.signal(), received.by_watchdog() ? SignalCopies::Receiver::kWatchdog
                                                        : SignalCopies::Receiver::kGuardian);
  }
}

void LauncherSignals::listen_to(UniqueFd control_pipe) {
  control_pipe_.emplace(loop_, std::move(control_pipe));
  read_control_pipe();
}

void LauncherSignals::read_control_pipe() {
  control_pipe_->read_some(bytes_, [this](std::error_code error, size_t n) {
    if (error) return handlers_.on_starter_lost();
    for (size_t i = 0; i < n; ++i) on_control_signal(bytes_[i]);
    read_control_pipe();
  });
}

// Every node has a control pipe of its own and receives the signal through it.
void LauncherSignals::on_control_signal(int signal) {
  const bool of_user = (signal == SIGUSR1 || signal == SIGUSR2) && !stops(signal);
  of_user ? handlers_.on_node_signal(signal) : on_signal(signal, SignalCopies::Receiver::kLauncher);
}

}  // namespace fleet
