#include "ps/server_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/fault_point.h"
#include "base/log.h"
#include "base/running_clock.h"
#include "ps/left_until.h"

namespace fleet::ps {

namespace {
constexpr double kLookAtStop = 0.1;  // seconds

// Tests end the server there.
void fault_point_of(const char* place, const Message& message) {
  fault_point(place, static_cast<int>(message.header.type));
}
}  // namespace

ConnectionId ServerLoop::id_of(const std::shared_ptr<Connection>& connection) {
  const auto [entry, added] = ids_.try_emplace(connection.get(), last_ + 1);
  if (added) connections_[++last_] = connection;
  return entry->second;
}

void ServerLoop::push(ServerEvent event) {
  events_.push_back(std::move(event));
  changed_.notify_all();
}

void ServerLoop::received(const std::shared_ptr<Connection>& connection, Message message) {
  const MutexLock lock(mutex_);
  push(Received{id_of(connection), connection->peer(), std::move(message)});
}

void ServerLoop::closed(const std::shared_ptr<Connection>& connection, const Error* why) {
  const MutexLock lock(mutex_);
  const ConnectionId id = id_of(connection);
  push(Closed{id, why ? why->failure() : ""});
  ids_.erase(connection.get());  // another connection may get its address
  connections_.erase(id);
}

// A signal handler cannot wake this thread.
ServerEvent ServerLoop::next(double deadline) {
  const double wait = std::clamp(deadline - running_seconds(), 0.0, kLookAtStop);
  const MutexLock lock(mutex_);
  if (events_.empty()) {
    changed_.wait_until(mutex_, std::chrono::steady_clock::now() +
                                    std::chrono::microseconds(std::llround(wait * 1e6)));
  }
  if (events_.empty()) return TimePassed();
  ServerEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

size_t ServerLoop::queued() {
  const MutexLock lock(mutex_);
  return events_.size();
}

void ServerLoop::handle(ServerEvent event, DenseServer& server, ServerCounters* counters) {
  const double begun = monotonic_seconds();
  const auto* received = std::get_if<Received>(&event);
  const bool works = received != nullptr;
  if (works) fault_point_of("ps_has", received->message);
  if (works && counters) counters->received(received->message);
  act(server.step(std::move(event), running_seconds()), counters);
  if (!counters) return;
  const double now = monotonic_seconds();
  if (works) counters->worked(now - begun);
  counters->publish(server, queued(), now);
}

void ServerLoop::act(std::vector<ServerAction> actions, ServerCounters* counters) {
  for (ServerAction& action : actions) {
    if (action.message && counters) counters->sent(*action.message);
    std::shared_ptr<Connection> connection;
    {
      const MutexLock lock(mutex_);
      const auto found = connections_.find(action.connection);
      if (found == connections_.end()) continue;  // it has ended
      connection = found->second;
    }
    if (action.message) {
      fault_point_of("ps_sends", *action.message);
      connection->send(std::move(*action.message));
    }
    if (action.close) connection->close();
  }
}

// The messages that are still queued, such as the reason for a failure, must arrive first.
void ServerLoop::end_connections() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::map<ConnectionId, std::shared_ptr<Connection>> open;
  {
    const MutexLock lock(mutex_);
    open = connections_;
  }
  for (const auto& [id, connection] : open) connection->close();
  for (const auto& [id, connection] : open) connection->disconnect(left_until(deadline));
}

void ServerLoop::abandon(DenseServer& server, const LostTrainers& lost) {
  if (!lost.stopping || !lost.stopping()) return;
  std::vector<int> abandoned;
  act(server.abandon_lost(&abandoned));
  for (const int trainer : abandoned) {
    spdlog::info("the job stops without trainer {}", trainer);
    if (lost.on_abandoned) abandoned_.push_back(trainer);
  }
  tell_of_abandoned(lost);
}

// The function may need another process. Trainers still need this one, whatever it throws.
void ServerLoop::tell_of_abandoned(const LostTrainers& lost) {
  while (!abandoned_.empty()) {
    try {
      lost.on_abandoned(abandoned_.front());
    } catch (const std::exception& error) {
      if (std::exchange(warned_, true)) return;
      spdlog::warn("cannot tell the other trainers that trainer {} has ended: {}; tries again",
                   abandoned_.front(), error.what());
      return;
    }
    warned_ = false;
    abandoned_.pop_front();
  }
}

// Trainers must not wait for a server that an exception has ended.
void ServerLoop::run(DenseServer& server, const std::function<bool()>& stop,
                     const LostTrainers& lost, ServerCounters* counters) {
  bool ended = false;
  try {
    ended = serve(server, stop, lost, counters);
  } catch (const std::exception& error) {
    act(server.fail(error_of(error, server.name())));
    ended = true;
  }
  end_connections();
  if (ended && server.error()) throw *server.error();
}

bool ServerLoop::serve(DenseServer& server, const std::function<bool()>& stop,
                       const LostTrainers& lost, ServerCounters* counters) {
  double look = 0;
  bool complete = false;
  while (!server.done() && !server.error()) {
    const double now = running_seconds();  // a suspended server blames no trainer for that time
    const bool looks = now >= look;
    if (looks) look = now + kLookAtStop;
    if (looks && stop && stop()) {
      act(server.fail(Error(ErrorCode::kPeerLost, "was asked to stop", server.name())));
      return false;
    }
    if (looks) abandon(server, lost);
    handle(next(server.next_deadline()), server, counters);
    for (const std::string& note : server.take_notes()) spdlog::warn("{}", note);
    if (server.complete() && !std::exchange(complete, true)) {
      spdlog::info("all trainers are connected");
    }
  }
  if (counters) counters->publish(server, 0, monotonic_seconds(), /*last=*/true);
  return true;
}

}  // namespace fleet::ps
