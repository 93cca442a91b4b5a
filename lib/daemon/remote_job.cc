#include "daemon/remote_job.h"

#include <signal.h>

#include <algorithm>

#include "rendezvous/types.h"

namespace fleet {

RemoteJob::RemoteJob(RemoteJobEffects& effects, std::vector<std::string> names, Mode mode,
                     std::string server)
    : effects_(effects),
      names_(std::move(names)),
      server_(std::move(server)),
      states_(names_.size(), mode == Mode::kAttach ? State::kRunning : State::kAsked),
      mode_(mode) {}

bool RemoteJob::all(State state) const {
  return std::all_of(states_.begin(), states_.end(), [&](State each) { return each == state; });
}

bool RemoteJob::any(State state) const {
  return std::find(states_.begin(), states_.end(), state) != states_.end();
}

bool RemoteJob::launched(int node) const {
  const State state = states_[static_cast<size_t>(node)];
  return state == State::kLaunched || state == State::kRunning;
}

void RemoteJob::on_prepared(int node) {
  State& state = states_[static_cast<size_t>(node)];
  if (state != State::kAsked) return;
  state = State::kPrepared;
  if (giving_up_) {
    state = State::kOver;
    effects_.hang_up(node);
    return end_if_over();
  }
  if (!all(State::kPrepared)) return;
  states_[0] = State::kLaunched;
  effects_.launch(0, 0);
}

void RemoteJob::on_hosting(int node, int rdzv_port) {
  if (node != 0 || giving_up_) return;
  for (int other = 1; other < count(); ++other) {
    State& state = states_[static_cast<size_t>(other)];
    if (state != State::kPrepared) continue;
    state = State::kLaunched;
    effects_.launch(other, rdzv_port);
  }
}

void RemoteJob::on_running(int node) {
  State& state = states_[static_cast<size_t>(node)];
  if (state != State::kLaunched) return;
  state = State::kRunning;
  if (mode_ != Mode::kDetach || giving_up_ || signals_ > 0 || !all(State::kRunning)) return;
  for (int each = 0; each < count(); ++each) effects_.detach(each);
}

void RemoteJob::on_detached(int node) {
  states_[static_cast<size_t>(node)] = State::kDetached;
  end_if_over();
}

void RemoteJob::on_refused(int node, const Error& error) {
  effects_.fail(server_ + names_[static_cast<size_t>(node)] + ": " + error.what());
  if (states_[static_cast<size_t>(node)] == State::kOver) return;
  states_[static_cast<size_t>(node)] = State::kOver;
  give_up(exit_code_for(error.code()), SIGTERM);
  end_if_over();
}

void RemoteJob::on_lost(int node, const Error& why) {
  State& state = states_[static_cast<size_t>(node)];
  if (state == State::kOver || state == State::kDetached) return;
  const bool reached = state != State::kAsked;
  const bool was_launched = launched(node);
  state = State::kOver;
  effects_.fail(why.what());
  // Launchers may have met before this client heard of it: they know best what is lost.
  const bool others = any(State::kLaunched) || any(State::kRunning);
  if (!was_launched || !others || any(State::kPrepared)) {
    const int unreached =
        why.code() == ErrorCode::kUsage ? exit_code_for(why.code()) : kExitRendezvous;
    give_up(reached ? kExitNodeLost : unreached, SIGTERM);
  } else if (!giving_up_) {
    if (code_ <= 0) code_ = kExitNodeLost;
    effects_.be_patient();
  }
  end_if_over();
}

void RemoteJob::on_ended(int node, int code, const std::string& verdict, bool decided) {
  State& state = states_[static_cast<size_t>(node)];
  if (state == State::kOver) return;
  const bool met = state == State::kRunning || code >= 128;
  state = State::kOver;
  if (decided && !decided_) {
    decided_ = true;
    // That they were stopped is no news where it was for another reason.
    if (!giving_up_ || signals_ > 0 || code_ <= 0) code_ = code;
    verdict_ = verdict;
  } else if (!decided && !decided_ && code_ <= 0) {
    code_ = code;
  }
  if (!decided && code >= 128 && signals_ == 0) {
    effects_.fail("fleetrun on " + names_[static_cast<size_t>(node)] + " was killed by " +
                  signal_name(code - 128));
  }
  // One that had joined is missed by the others; of the rest they cannot know.
  if (!decided && !met) {
    give_up(code, SIGTERM);
  } else if (!decided && !giving_up_) {
    effects_.be_patient();
  }
  end_if_over();
}

void RemoteJob::on_patience_over() {
  give_up(code_, SIGTERM);
  end_if_over();
}

void RemoteJob::give_up(int exit_code, int signal) {
  if (code_ <= 0 && !decided_) code_ = exit_code;
  if (giving_up_) return;
  giving_up_ = true;
  sent_ = signal;
  for (int node = 0; node < count(); ++node) {
    const bool own = mode_ != Mode::kAttach || signals_ > 0;
    if (launched(node) && own) {
      effects_.signal(node, signal);
    } else if (launched(node) || states_[static_cast<size_t>(node)] == State::kPrepared) {
      states_[static_cast<size_t>(node)] = State::kOver;
      effects_.hang_up(node);
    }
  }
}

void RemoteJob::on_signal(int number) {
  if (ended_) return;
  if (number == SIGUSR1 || number == SIGUSR2) {
    for (int node = 0; node < count(); ++node) {
      if (launched(node)) effects_.signal(node, number);
    }
    return;
  }
  if (++signals_ == 1) first_signal_ = number;
  const bool none_runs = !any(State::kLaunched) && !any(State::kRunning);
  if (none_runs || signals_ > 2) {
    for (int node = 0; node < count(); ++node) effects_.hang_up(node);
    ended_ = true;
    return effects_.end(128 + first_signal_);
  }
  if (signals_ == 1)
    effects_.say(signal_name(number) + ": stopping the ranks; once more kills them");
  if (!giving_up_) return give_up(128 + number, number);
  // Two of the same that come close together might be taken for one.
  sent_ = number != sent_ ? number : number == SIGINT ? SIGTERM : SIGINT;
  for (int node = 0; node < count(); ++node) {
    if (launched(node)) effects_.signal(node, sent_);
  }
}

void RemoteJob::end_if_over() {
  const bool over = std::all_of(states_.begin(), states_.end(), [](State state) {
    return state == State::kOver || state == State::kDetached;
  });
  if (ended_ || !over) return;
  ended_ = true;
  left_ = any(State::kDetached);
  if (left_) return effects_.end(0);
  // Who kills takes the rendezvous down too: what the others make of that is no news.
  if (signals_ > 1) return effects_.end(128 + first_signal_);
  if (!verdict_.empty()) effects_.fail(verdict_);
  effects_.end(code_ < 0 ? 1 : code_);
}

}  // namespace fleet
