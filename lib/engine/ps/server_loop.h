// Runs the logic of a server on one thread: events of its connections wait in a queue.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "ps/connection.h"
#include "ps/dense_server.h"
#include "ps/server_counters.h"

namespace fleet::ps {

// The end of lost trainers when the job stops; ServerOptions describes both. Null: nothing.
struct LostTrainers {
  std::function<bool()> stopping = nullptr;
  std::function<void(int trainer)> on_abandoned = nullptr;  // called again after an exception
};

// The handler of a server's connections. Must outlive them.
class ServerLoop : public ConnectionHandler {
 public:
  void received(const std::shared_ptr<Connection>& connection, Message message) override;
  void closed(const std::shared_ptr<Connection>& connection, const Error* why) override;

  // Passes events to the server until all trainers have said goodbye, or stop() holds (null:
  // never). Throws the server's error, after the trainers have received it. counters: null, or
  // counts and publishes what the server does.
  void run(DenseServer& server, const std::function<bool()>& stop, const LostTrainers& lost = {},
           ServerCounters* counters = nullptr);

 private:
  ConnectionId id_of(const std::shared_ptr<Connection>& connection) FLEET_REQUIRES(mutex_);
  void push(ServerEvent event) FLEET_REQUIRES(mutex_);
  ServerEvent next(double deadline);
  void act(std::vector<ServerAction> actions, ServerCounters* counters = nullptr);
  void handle(ServerEvent event, DenseServer& server, ServerCounters* counters);
  size_t queued();
  // False: stop() has ended it.
  bool serve(DenseServer& server, const std::function<bool()>& stop, const LostTrainers& lost,
             ServerCounters* counters);
  void abandon(DenseServer& server, const LostTrainers& lost);
  void tell_of_abandoned(const LostTrainers& lost);
  void end_connections();

  std::deque<int> abandoned_;  // trainers of which on_abandoned() has not been told
  bool warned_ = false;        // the last call of it threw

  Mutex mutex_;
  CondVar changed_;
  std::deque<ServerEvent> events_ FLEET_GUARDED_BY(mutex_);
  std::map<const Connection*, ConnectionId> ids_ FLEET_GUARDED_BY(mutex_);
  std::map<ConnectionId, std::shared_ptr<Connection>> connections_ FLEET_GUARDED_BY(mutex_);
  ConnectionId last_ FLEET_GUARDED_BY(mutex_) = 0;
};

}  // namespace fleet::ps
