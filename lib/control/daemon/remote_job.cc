#include "daemon/remote_job.h"

#include <signal.h>

#include <algorithm>

#include "daemon/job_info.h"
#include "rendezvous/membership.h"
#include "rendezvous/types.h"
#include "transport/control_messages.h"

namespace fleet {
namespace {

// A node that has not prepared its part by then is named in a warning.
constexpr std::chrono::milliseconds kSilenceWarning{10'000};
// Nodes whose rendezvous the client does not know yet report within this time.
constexpr std::chrono::milliseconds kFormingTimeout{2'000};
// A launcher that knows the verdict ends within this time after the grace time of the ranks.
constexpr std::chrono::milliseconds kVerdictTimeout{15'000};

}  // namespace

RemoteJob::RemoteJob(std::vector<std::string> names, Options options)
    : names_(std::move(names)),
      options_(std::move(options)),
      min_nodes_(options_.min_nodes > 0 ? options_.min_nodes : static_cast<int>(names_.size())),
      states_(names_.size(), options_.mode == Mode::kAttach ? State::kRunning : State::kPending),
      formed_(options_.mode == Mode::kAttach) {}

std::vector<RemoteJobAction> RemoteJob::step(const RemoteJobEvent& event, Time now) {
  if (!ended_) std::visit([&](const auto& one) { on(one, now); }, event);
  return std::exchange(actions_, {});
}

void RemoteJob::on(const RequestsSent&, Time now) {
  if (options_.start_timeout.count() <= 0 || !any(State::kPending)) return;
  prepared_by_ = now + options_.start_timeout;
  deadline_ = std::min(now + kSilenceWarning, prepared_by_);
}

void RemoteJob::on(const FromFleetd& from, Time now) {
  const int node = from.node;
  const wire::FleetdMessage& message = from.message;
  switch (message.kind_case()) {
    case wire::FleetdMessage::kRefused:
      return on_refused(node, from_wire(message.refused()));
    case wire::FleetdMessage::kPrepared:
      return on_prepared(node);
    case wire::FleetdMessage::kHosting:
      return on_hosting(node, message.hosting().rdzv_port());
    case wire::FleetdMessage::kRunning:
      return on_running(node, message.running().nnodes());
    case wire::FleetdMessage::kDetached:
      return on_detached(node);
    case wire::FleetdMessage::kEnded:
      return on_ended(node, message.ended(), now);
    case wire::FleetdMessage::kOutput:
    case wire::FleetdMessage::kJobs:
    case wire::FleetdMessage::kHeartbeat:
    case wire::FleetdMessage::kLive:
    case wire::FleetdMessage::KIND_NOT_SET:
      return;  // nothing to decide
  }
}

void RemoteJob::launch(int node, int rdzv_port) {
  at(node) = State::kLaunched;
  wire::LaunchJob job;
  job.set_rdzv_port(rdzv_port);
  send(node, envelope(&wire::ClientMessage::mutable_launch, job));
}

void RemoteJob::stop(int node, int signal, bool kill) {
  send(node, envelope(&wire::ClientMessage::mutable_stop, stop_request(signal, kill)));
}

void RemoteJob::end(int exit_code, bool detached) {
  ended_ = true;
  deadline_ = Time::max();
  actions_.push_back(EndClient{exit_code, detached});
}

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
  close_session(node);
  end_if_done();
}

void RemoteJob::launch_if_all_prepared() {
  if (any(State::kPending) || at(0) != State::kPrepared) return;
  deadline_ = Time::max();
  launch(0, 0);
}

void RemoteJob::on_hosting(int node, int rdzv_port) {
  if (node != 0 || aborting_) return;
  for (int other = 1; other < nodes(); ++other) {
    if (at(other) == State::kPrepared) launch(other, rdzv_port);
  }
}

// Comes again after each restart: its ranks run, in a world of `nnodes` nodes.
void RemoteJob::on_running(int node, int nnodes) {
  if (!launched(node)) return;
  at(node) = State::kRunning;
  formed_ = true;
  const bool leaves = options_.mode == Mode::kDetach && !aborting_ && !detaching_ && signals_ == 0;
  // Spare nodes run no ranks.
  if (!leaves || count(State::kRunning) < nnodes) return;
  detaching_ = true;
  for (int each = 0; each < nodes(); ++each) {
    if (launched(each)) send(each, envelope(&wire::ClientMessage::mutable_detach));
  }
}

void RemoteJob::on_detached(int node) {
  at(node) = State::kDetached;
  end_if_done();
}

void RemoteJob::on_refused(int node, const Error& error) {
  show(ShowLine::kError, options_.node_prefix + name(node) + ": " + error.what());
  if (at(node) == State::kEnded) return;
  at(node) = State::kEnded;
  abort_job(launcher_exit_code(error.code()), SIGTERM);
  end_if_done();
}

void RemoteJob::on(const FleetdLost& lost, Time now) {
  const int node = lost.node;
  if (at(node) == State::kEnded || at(node) == State::kDetached) return;
  const State was = at(node);
  at(node) = State::kEnded;
  show(ShowLine::kError, lost.why.what());
  if (!aborting_) handle_lost(node, was, lost.why, now);
  end_if_done();
}

void RemoteJob::handle_lost(int node, State was, const Error& why, Time now) {
  const bool pending = was == State::kPending;
  if (pending || was == State::kPrepared) {
    const bool wrong = why.code() == ErrorCode::kUsage;
    // The first node hosts the rendezvous, so the job cannot start without it.
    if (node != 0 && has_min_nodes() && !wrong) {
      show(ShowLine::kWarning, "the job starts without " + name(node));
      return launch_if_all_prepared();
    }
    const int unreached = wrong ? exit_code_for(why.code()) : kExitRendezvous;
    return abort_job(pending ? unreached : kExitNodeLost, SIGTERM);
  }
  const bool others = any(State::kLaunched) || any(State::kRunning);
  if (!others || any(State::kPrepared)) return abort_job(kExitNodeLost, SIGTERM);
  if (code_ <= 0 && !verdict_) code_ = kExitNodeLost;
  if (!formed_) deadline_ = now + kFormingTimeout;
}

void RemoteJob::on_ended(int node, const wire::JobEnded& ended, Time now) {
  if (at(node) == State::kEnded) return;
  const int code = ended.code();
  const wire::JobVerdict* verdict = ended.has_verdict() ? &ended.verdict() : nullptr;
  at(node) = State::kEnded;
  // After a partition each part has a verdict; the part with the highest generation wins.
  if (verdict &&
      (!verdict_ || verdict->verdict().generation() > verdict_->verdict().generation())) {
    // Ignore the code of a stop that another failure has caused.
    if (!aborting_ || signals_ > 0 || code_ <= 0) code_ = code;
    verdict_ = *verdict;
  } else if (!verdict && !verdict_ && code_ <= 0) {
    code_ = code;
  }
  const bool killed = !verdict && code >= 128;
  if (killed && signals_ == 0) {
    show(ShowLine::kError,
         "fleetrun on " + name(node) + " was killed by " + signal_name(code - 128));
  }
  end_if_done();
  const bool may_go_on = options_.restarts && verdict && node_lost(*verdict);
  if (ended_ || aborting_ || may_go_on) return;
  if (verdict) {
    if (options_.mode != Mode::kAttach) deadline_ = now + options_.grace + kVerdictTimeout;
  } else if (!formed_ && killed) {
    // If its launcher had joined, the others notice its loss. Otherwise they cannot know.
    deadline_ = now + kFormingTimeout;
  } else if (!formed_) {
    abort_job(code, SIGTERM);
  }
  end_if_done();
}

void RemoteJob::on(const TimePassed&, Time now) {
  if (now < deadline_) return;
  deadline_ = Time::max();
  if (any(State::kPending)) return handle_silent_nodes(now);
  if (!verdict_ && (formed_ || has_min_nodes())) return;
  abort_job(code_, SIGTERM);
  end_if_done();
}

void RemoteJob::handle_silent_nodes(Time now) {
  const auto allowed = std::chrono::ceil<std::chrono::seconds>(options_.start_timeout);
  const std::string within = std::to_string(allowed.count()) + " s (--rdzv_timeout)";
  std::vector<int> silent;
  std::vector<std::string> silent_names;
  for (int node = 0; node < nodes(); ++node) {
    if (at(node) != State::kPending) continue;
    silent.push_back(node);
    silent_names.push_back(name(node));
  }
  if (now < prepared_by_) {
    deadline_ = prepared_by_;
    return show(ShowLine::kWarning, "no answer yet from " + options_.node_prefix +
                                        list_some(silent_names) + "; waiting up to " + within);
  }
  for (const int node : silent) {
    const Error error(ErrorCode::kTimeout, "no answer within " + within,
                      options_.node_prefix + name(node), "check whether that node hangs");
    show(ShowLine::kError, error.what());
    at(node) = State::kEnded;
    close_session(node);
    if (!aborting_) handle_lost(node, State::kPending, error, now);
  }
  end_if_done();
}

void RemoteJob::abort_job(int exit_code, int signal) {
  if (code_ <= 0 && !verdict_) code_ = exit_code;
  if (aborting_) return;
  aborting_ = true;
  for (int node = 0; node < nodes(); ++node) {
    const bool own = options_.mode != Mode::kAttach || signals_ > 0;
    if (launched(node) && own) {
      stop(node, signal, false);
    } else if (launched(node) || at(node) == State::kPrepared) {
      at(node) = State::kEnded;
      close_session(node);
    }
  }
}

void RemoteJob::on(const SignalReceived& signal, Time) {
  const int number = signal.number;
  if (number == SIGUSR1 || number == SIGUSR2) return send_user_signal(number);
  // A lost terminal stops no job that does not belong to it.
  if (number == SIGHUP && options_.mode == Mode::kAttach) return leave(128 + SIGHUP);
  if (++signals_ == 1) first_signal_ = number;
  const bool none_runs = !any(State::kLaunched) && !any(State::kRunning);
  if (none_runs || signals_ > 2) {
    for (int node = 0; node < nodes(); ++node) close_session(node);
    return end(128 + first_signal_);
  }
  if (signals_ == 1) {
    show(ShowLine::kWarning,
         signal_name(number) + ": stopping the ranks; send it again to kill them");
  }
  if (!aborting_) return abort_job(128 + number, number);
  for (int node = 0; node < nodes(); ++node) {
    if (launched(node)) stop(node, number, true);
  }
}

void RemoteJob::on(const DetachRequested&, Time) { leave(0); }

// The job continues.
void RemoteJob::leave(int exit_code) {
  for (int node = 0; node < nodes(); ++node) {
    if (at(node) != State::kEnded) close_session(node);
  }
  end(exit_code, true);
}

// One launcher passes it on to the whole job.
void RemoteJob::send_user_signal(int number) {
  wire::SignalJob signal;
  signal.set_number(number);
  for (const State state : {State::kRunning, State::kLaunched}) {
    const auto found = std::find(states_.begin(), states_.end(), state);
    if (found == states_.end()) continue;
    return send(static_cast<int>(found - states_.begin()),
                envelope(&wire::ClientMessage::mutable_signal, signal));
  }
}

void RemoteJob::end_if_done() {
  if (ended_ || count(State::kEnded) + count(State::kDetached) < nodes()) return;
  // The remaining nodes notice a node that was lost while detaching.
  if (any(State::kDetached)) return end(std::max(code_, 0), true);
  // A kill also ends the rendezvous, so ignore what other nodes report about that.
  if (signals_ > 1) return end(128 + first_signal_);
  if (std::string text = failure(); !text.empty()) show(ShowLine::kError, std::move(text));
  end(code_ < 0 ? 1 : code_);
}

std::string RemoteJob::failure() const {
  if (!verdict_) return {};
  const std::string text = failure_text(*verdict_);
  // A client that attaches has not shown all output.
  const bool seen = options_.shows_output && options_.mode != Mode::kAttach;
  const bool repeats = !text.empty() && seen && !verdict_->unseen_text().empty();
  return repeats ? verdict_->unseen_text() : text;
}

}  // namespace fleet
