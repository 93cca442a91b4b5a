#include "daemon/remote_job.h"

#include <signal.h>

#include <algorithm>

#include "rendezvous/exit_code.h"
#include "rendezvous/types.h"

namespace fleet {
namespace {

// Nodes whose rendezvous the client has not heard of yet report within this time.
constexpr std::chrono::milliseconds kFormingTimeout{2'000};
// A launcher that knows the verdict ends within this time after the grace time of the ranks.
constexpr std::chrono::milliseconds kVerdictTimeout{15'000};

}  // namespace

RemoteJob::RemoteJob(RemoteJobEffects& effects, std::vector<std::string> names, Options options)
    : effects_(effects),
      names_(std::move(names)),
      options_(std::move(options)),
      min_nodes_(options_.min_nodes > 0 ? options_.min_nodes : static_cast<int>(names_.size())),
      states_(names_.size(), options_.mode == Mode::kAttach ? State::kRunning : State::kPending),
      formed_(options_.mode == Mode::kAttach) {}

int RemoteJob::count(State state) const {
  return static_cast<int>(std::count(states_.begin(), states_.end(), state));
}

bool RemoteJob::launched(int node) const {
  const State state = states_[static_cast<size_t>(node)];
  return state == State::kLaunched || state == State::kRunning;
}

void RemoteJob::on_prepared(int node) {
  if (at(node) != State::kPending) return;
  at(node) = State::kPrepared;
  if (!aborting_) return launch_if_all_prepared();
  at(node) = State::kEnded;
  effects_.close_session(node);
  end_if_done();
}

void RemoteJob::launch_if_all_prepared() {
  if (any(State::kPending) || at(0) != State::kPrepared) return;
  at(0) = State::kLaunched;
  effects_.launch(0, 0);
}

void RemoteJob::on_hosting(int node, int rdzv_port) {
  if (node != 0 || aborting_) return;
  for (int other = 1; other < nodes(); ++other) {
    if (at(other) != State::kPrepared) continue;
    at(other) = State::kLaunched;
    effects_.launch(other, rdzv_port);
  }
}

void RemoteJob::on_running(int node, int nnodes) {
  if (!launched(node)) return;
  at(node) = State::kRunning;
  formed_ = true;
  const bool leaves = options_.mode == Mode::kDetach && !aborting_ && !detaching_ && signals_ == 0;
  // Spare nodes run no ranks.
  if (!leaves || count(State::kRunning) < nnodes) return;
  detaching_ = true;
  for (int each = 0; each < nodes(); ++each) {
    if (launched(each)) effects_.detach(each);
  }
}

void RemoteJob::on_detached(int node) {
  at(node) = State::kDetached;
  end_if_done();
}

void RemoteJob::on_refused(int node, const Error& error) {
  effects_.report_error(options_.node_prefix + name(node) + ": " + error.what());
  if (at(node) == State::kEnded) return;
  at(node) = State::kEnded;
  abort_job(launcher_exit_code(error.code()), SIGTERM);
  end_if_done();
}

void RemoteJob::on_lost(int node, const Error& why) {
  if (at(node) == State::kEnded || at(node) == State::kDetached) return;
  const State was = at(node);
  at(node) = State::kEnded;
  effects_.report_error(why.what());
  if (!aborting_) handle_lost(node, was, why);
  end_if_done();
}

void RemoteJob::handle_lost(int node, State was, const Error& why) {
  const bool pending = was == State::kPending;
  if (pending || was == State::kPrepared) {
    const bool wrong = why.code() == ErrorCode::kUsage;
    // The first node hosts the rendezvous, so the job cannot start without it.
    if (node != 0 && has_min_nodes() && !wrong) {
      effects_.warn("the job starts without " + name(node));
      return launch_if_all_prepared();
    }
    const int unreached = wrong ? exit_code_for(why.code()) : kExitRendezvous;
    return abort_job(pending ? unreached : kExitNodeLost, SIGTERM);
  }
  const bool others = any(State::kLaunched) || any(State::kRunning);
  if (!others || any(State::kPrepared)) return abort_job(kExitNodeLost, SIGTERM);
  if (code_ <= 0 && !verdict_) code_ = kExitNodeLost;
  if (!formed_) effects_.start_timer(kFormingTimeout);
}

void RemoteJob::on_ended(int node, int code, const std::optional<VerdictSummary>& verdict) {
  if (at(node) == State::kEnded) return;
  at(node) = State::kEnded;
  // After a partition each part has a verdict; the part with the highest generation wins.
  if (verdict && (!verdict_ || verdict->generation() > verdict_->generation())) {
    // Ignore the code of a stop that another failure has caused.
    if (!aborting_ || signals_ > 0 || code_ <= 0) code_ = code;
    verdict_ = verdict;
  } else if (!verdict && !verdict_ && code_ <= 0) {
    code_ = code;
  }
  const bool killed = !verdict && code >= 128;
  if (killed && signals_ == 0) {
    effects_.report_error("fleetrun on " + name(node) + " was killed by " +
                          signal_name(code - 128));
  }
  end_if_done();
  const bool may_go_on = options_.restarts && verdict && verdict->node_lost();
  if (ended_ || aborting_ || may_go_on) return;
  if (!verdict && !formed_) {
    // If a launcher had joined, the others notice its loss. Otherwise they cannot know.
    killed ? effects_.start_timer(kFormingTimeout) : abort_job(code, SIGTERM);
  } else if (verdict && options_.mode != Mode::kAttach) {
    effects_.start_timer(options_.grace + kVerdictTimeout);
  }
  end_if_done();
}

void RemoteJob::on_timer() {
  if (ended_ || (!verdict_ && (formed_ || has_min_nodes()))) return;
  abort_job(code_, SIGTERM);
  end_if_done();
}

void RemoteJob::abort_job(int exit_code, int signal) {
  if (code_ <= 0 && !verdict_) code_ = exit_code;
  if (aborting_) return;
  aborting_ = true;
  last_signal_ = signal;
  for (int node = 0; node < nodes(); ++node) {
    const bool own = options_.mode != Mode::kAttach || signals_ > 0;
    if (launched(node) && own) {
      effects_.signal(node, signal);
    } else if (launched(node) || at(node) == State::kPrepared) {
      at(node) = State::kEnded;
      effects_.close_session(node);
    }
  }
}

// One launcher forwards the signal to the whole job.
void RemoteJob::signal_one_launcher(int number) {
  for (const State state : {State::kRunning, State::kLaunched}) {
    const auto found = std::find(states_.begin(), states_.end(), state);
    if (found == states_.end()) continue;
    return effects_.signal(static_cast<int>(found - states_.begin()), number);
  }
}

void RemoteJob::on_signal(int number) {
  if (ended_) return;
  if (number == SIGUSR1 || number == SIGUSR2) return signal_one_launcher(number);
  if (++signals_ == 1) first_signal_ = number;
  const bool none_runs = !any(State::kLaunched) && !any(State::kRunning);
  if (none_runs || signals_ > 2) {
    for (int node = 0; node < nodes(); ++node) effects_.close_session(node);
    ended_ = true;
    return effects_.end(128 + first_signal_);
  }
  if (signals_ == 1)
    effects_.warn(signal_name(number) + ": stopping the ranks; send it again to kill them");
  if (!aborting_) return abort_job(128 + number, number);
  // Alternate the signals, because two equal ones in quick succession may merge.
  last_signal_ = number != last_signal_ ? number : number == SIGINT ? SIGTERM : SIGINT;
  for (int node = 0; node < nodes(); ++node) {
    if (launched(node)) effects_.signal(node, last_signal_);
  }
}

void RemoteJob::end_if_done() {
  if (ended_ || count(State::kEnded) + count(State::kDetached) < nodes()) return;
  ended_ = true;
  detached_ = any(State::kDetached);
  // The remaining nodes notice a node that was lost while detaching.
  if (detached_) return effects_.end(std::max(code_, 0));
  // A kill also ends the rendezvous, so ignore what other nodes report about that.
  if (signals_ > 1) return effects_.end(128 + first_signal_);
  if (verdict_ && !verdict_->text().empty()) effects_.report_error(verdict_->text());
  effects_.end(code_ < 0 ? 1 : code_);
}

}  // namespace fleet
