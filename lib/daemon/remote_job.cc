#include "daemon/remote_job.h"

#include <signal.h>

#include <algorithm>

#include "rendezvous/exit_code.h"
#include "rendezvous/types.h"

namespace fleet {
namespace {

// Nodes whose rendezvous the client has not heard of yet report within this time.
constexpr std::chrono::milliseconds kMeeting{2'000};
// A launcher that knows the verdict ends within this time after the grace time of the ranks.
constexpr std::chrono::milliseconds kEnding{15'000};

}  // namespace

RemoteJob::RemoteJob(RemoteJobEffects& effects, std::vector<std::string> names, Terms terms)
    : effects_(effects),
      names_(std::move(names)),
      terms_(std::move(terms)),
      fewest_(terms_.fewest > 0 ? terms_.fewest : static_cast<int>(names_.size())),
      states_(names_.size(), terms_.mode == Mode::kAttach ? State::kRunning : State::kAsked),
      begun_(terms_.mode == Mode::kAttach) {}

int RemoteJob::count(State state) const {
  return static_cast<int>(std::count(states_.begin(), states_.end(), state));
}

bool RemoteJob::launched(int node) const {
  const State state = states_[static_cast<size_t>(node)];
  return state == State::kLaunched || state == State::kRunning;
}

void RemoteJob::on_prepared(int node) {
  if (at(node) != State::kAsked) return;
  at(node) = State::kPrepared;
  if (!giving_up_) return launch_if_all_answered();
  at(node) = State::kOver;
  effects_.hang_up(node);
  end_if_over();
}

void RemoteJob::launch_if_all_answered() {
  if (any(State::kAsked) || at(0) != State::kPrepared) return;
  at(0) = State::kLaunched;
  effects_.launch(0, 0);
}

void RemoteJob::on_hosting(int node, int rdzv_port) {
  if (node != 0 || giving_up_) return;
  for (int other = 1; other < nodes(); ++other) {
    if (at(other) != State::kPrepared) continue;
    at(other) = State::kLaunched;
    effects_.launch(other, rdzv_port);
  }
}

void RemoteJob::on_running(int node, int nnodes) {
  if (!launched(node)) return;
  at(node) = State::kRunning;
  begun_ = true;
  const bool leaves = terms_.mode == Mode::kDetach && !giving_up_ && !leaving_ && signals_ == 0;
  // Spare nodes run no ranks.
  if (!leaves || count(State::kRunning) < nnodes) return;
  leaving_ = true;
  for (int each = 0; each < nodes(); ++each) {
    if (launched(each)) effects_.detach(each);
  }
}

void RemoteJob::on_detached(int node) {
  at(node) = State::kDetached;
  end_if_over();
}

void RemoteJob::on_refused(int node, const Error& error) {
  effects_.fail(terms_.server + name(node) + ": " + error.what());
  if (at(node) == State::kOver) return;
  at(node) = State::kOver;
  give_up(launcher_exit_code(error.code()), SIGTERM);
  end_if_over();
}

void RemoteJob::on_lost(int node, const Error& why) {
  if (at(node) == State::kOver || at(node) == State::kDetached) return;
  const State was = at(node);
  at(node) = State::kOver;
  effects_.fail(why.what());
  if (!giving_up_) lost(node, was, why);
  end_if_over();
}

void RemoteJob::lost(int node, State was, const Error& why) {
  const bool asked = was == State::kAsked;
  if (asked || was == State::kPrepared) {
    const bool wrong = why.code() == ErrorCode::kUsage;
    // The first node hosts the rendezvous, so the job cannot start without it.
    if (node != 0 && enough() && !wrong) {
      effects_.say("the job starts without " + name(node));
      return launch_if_all_answered();
    }
    const int unreached = wrong ? exit_code_for(why.code()) : kExitRendezvous;
    return give_up(asked ? unreached : kExitNodeLost, SIGTERM);
  }
  const bool others = any(State::kLaunched) || any(State::kRunning);
  if (!others || any(State::kPrepared)) return give_up(kExitNodeLost, SIGTERM);
  if (code_ <= 0 && !verdict_) code_ = kExitNodeLost;
  if (!begun_) effects_.be_patient(kMeeting);
}

void RemoteJob::on_ended(int node, int code, const std::optional<VerdictNote>& verdict) {
  if (at(node) == State::kOver) return;
  at(node) = State::kOver;
  // After a partition each part has a verdict; the part with the highest generation wins.
  if (verdict && (!verdict_ || verdict->epoch > verdict_->epoch)) {
    // Ignore the code of a stop that another failure has caused.
    if (!giving_up_ || signals_ > 0 || code_ <= 0) code_ = code;
    verdict_ = verdict;
  } else if (!verdict && !verdict_ && code_ <= 0) {
    code_ = code;
  }
  const bool killed = !verdict && code >= 128;
  if (killed && signals_ == 0) {
    effects_.fail("fleetrun on " + name(node) + " was killed by " + signal_name(code - 128));
  }
  end_if_over();
  const bool may_go_on = terms_.restarts && verdict && verdict->node_lost;
  if (ended_ || giving_up_ || may_go_on) return;
  if (!verdict && !begun_) {
    // If a launcher had joined, the others notice its loss. Otherwise they cannot know.
    killed ? effects_.be_patient(kMeeting) : give_up(code, SIGTERM);
  } else if (verdict && terms_.mode != Mode::kAttach) {
    effects_.be_patient(terms_.grace + kEnding);
  }
  end_if_over();
}

void RemoteJob::on_patience_over() {
  if (ended_ || (!verdict_ && (begun_ || enough()))) return;
  give_up(code_, SIGTERM);
  end_if_over();
}

void RemoteJob::give_up(int exit_code, int signal) {
  if (code_ <= 0 && !verdict_) code_ = exit_code;
  if (giving_up_) return;
  giving_up_ = true;
  sent_ = signal;
  for (int node = 0; node < nodes(); ++node) {
    const bool own = terms_.mode != Mode::kAttach || signals_ > 0;
    if (launched(node) && own) {
      effects_.signal(node, signal);
    } else if (launched(node) || at(node) == State::kPrepared) {
      at(node) = State::kOver;
      effects_.hang_up(node);
    }
  }
}

// One launcher forwards the signal to the whole job.
void RemoteJob::tell_one_launcher(int number) {
  for (const State state : {State::kRunning, State::kLaunched}) {
    const auto found = std::find(states_.begin(), states_.end(), state);
    if (found == states_.end()) continue;
    return effects_.signal(static_cast<int>(found - states_.begin()), number);
  }
}

void RemoteJob::on_signal(int number) {
  if (ended_) return;
  if (number == SIGUSR1 || number == SIGUSR2) return tell_one_launcher(number);
  if (++signals_ == 1) first_signal_ = number;
  const bool none_runs = !any(State::kLaunched) && !any(State::kRunning);
  if (none_runs || signals_ > 2) {
    for (int node = 0; node < nodes(); ++node) effects_.hang_up(node);
    ended_ = true;
    return effects_.end(128 + first_signal_);
  }
  if (signals_ == 1)
    effects_.say(signal_name(number) + ": stopping the ranks; send it again to kill them");
  if (!giving_up_) return give_up(128 + number, number);
  // Alternate the signals, because two equal ones in quick succession may merge.
  sent_ = number != sent_ ? number : number == SIGINT ? SIGTERM : SIGINT;
  for (int node = 0; node < nodes(); ++node) {
    if (launched(node)) effects_.signal(node, sent_);
  }
}

void RemoteJob::end_if_over() {
  if (ended_ || count(State::kOver) + count(State::kDetached) < nodes()) return;
  ended_ = true;
  left_ = any(State::kDetached);
  // The remaining nodes notice a node that was lost while detaching.
  if (left_) return effects_.end(std::max(code_, 0));
  // A kill also ends the rendezvous, so ignore what other nodes report about that.
  if (signals_ > 1) return effects_.end(128 + first_signal_);
  if (verdict_ && !verdict_->text.empty()) effects_.fail(verdict_->text);
  effects_.end(code_ < 0 ? 1 : code_);
}

}  // namespace fleet
