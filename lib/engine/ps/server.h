// A parameter server: holds its blocks of a job's parameters and updates them from the gradients
// that the trainers push.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ps/connection.h"
#include "ps/tables/table_settings.h"
#include "strategy/server_settings.h"
#include "train/session.h"

namespace fleet::ps {

struct ServerOptions {
  std::string address;  // "host:port" to listen on, as listen() takes it
  int server = 0;       // its position in the list of servers
  int servers = 1;
  int trainers = 1;
  // The settings of the tables that the Program has (tables_of()).
  std::vector<TableSettings> tables = {};
  ServerMode mode = ServerMode::kSync;
  TransportOptions transport = {};
  // The longest that one trainer waits for the others, at the start as well as in a step.
  std::chrono::milliseconds timeout{30 * 60 * 1000};
  // Asked about ten times a second: whether to end serving early. Null: never.
  std::function<bool()> stop = nullptr;
  // Asked as often: whether the job stops, so that nothing takes the place of a lost trainer (async
  // and geo). Null: never. Then told of each such trainer, on the same thread.
  std::function<bool()> stopping = nullptr;
  std::function<void(int trainer)> on_abandoned = nullptr;
};

// Serves until every trainer has said goodbye, or stop() holds. program: the options with which
// trainer 0 builds its Program (expected_columns(job), rank 0, world = trainers); the server builds
// the same. Errors: kUsage and kIo of listen(); kUnsupported naming a key of the job that servers
// do not support; kPeerLost naming a trainer that has gone, kTimeout naming those that did not
// arrive. All trainers have then received the reason.
void run_server(const Job& job, const ProgramOptions& program, const ServerOptions& options);
// Like the above, with trainer 0's Program.
void run_server(const Program& trainer, const ServerOptions& options);

}  // namespace fleet::ps
