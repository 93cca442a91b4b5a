// The trainer's side of dense parameter servers.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "exec/parameter_exchange.h"
#include "graph/program.h"
#include "ps/connection.h"
#include "ps/tables/table_settings.h"
#include "strategy/server_settings.h"
#include "tensor/device.h"

namespace fleet::ps {

struct ClientOptions {
  std::vector<std::string> servers;  // "host:port", in the order that all processes of the job have
  int trainer = 0, trainers = 1;
  uint32_t incarnation = 0;                // HelloHead::incarnation
  std::vector<TableSettings> tables = {};  // as ServerOptions::tables
  int64_t table_deltas = 0;                // checkpoints with changes of tables, between whole ones
  ServerSettings settings = {};            // the mode; the servers' options have the same
  TransportOptions transport = {};
  Device* device =
      nullptr;  // the executor's, for host memory that it copies to fast; null: the CPU
  std::chrono::milliseconds connect_timeout{5 * 60 * 1000};
  // The longest wait for an answer. Servers give up first and name the trainer that they miss, so
  // this should exceed ServerOptions::timeout.
  std::chrono::milliseconds timeout{31 * 60 * 1000};
};

// Connects to all servers, which check that this trainer has the same parameters and update rule.
// program: the trainer's, which the executor given to begin() runs; only used in this call. It has
// a section "optimize" that does not run in training steps. Its gradients (Program::gradient() of
// each trained parameter) must be kept, so that they can be read after a step.
//
// In sync, update() pushes them and returns with the new parameters; sums of gradient_merge are
// left for the caller to zero. If the section "optimize" checks for NaN (optim/check_finite.h), an
// update with a bad loss or gradient on any trainer is left out on all servers, and the states of
// the check are set as its operations would set them. begin() and synchronize() also give all ranks
// trainer 0's running statistics and parameters that are not trained. In async see
// ps/async_client.h, in geo ps/geo_client.h.
//
// Errors: kUnsupported naming a key of the job that servers do not support; kUsage naming the
// difference between trainer and server; kTimeout and kPeerLost naming the server, "server 1 at
// 10.0.0.2:6070".
std::unique_ptr<ParameterExchange> connect_servers(const Program& program,
                                                   const ClientOptions& options);

}  // namespace fleet::ps
