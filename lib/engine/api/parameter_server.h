// Parameter servers for programs with their own training loop, under Paddle's names
// (docs/how-to/own_trainer.md). `fleetrun --server_num=2 --worker_num=4 ./program` starts the
// program as servers and as trainers; both make the same Model and minimize its loss.
#pragma once

#include <memory>
#include <string>

#include "api/executor.h"
#include "api/model.h"
#include "api/worker.h"

namespace fleet {

// A server, before it serves. The worker must outlive it.
class ParameterServer {
 public:
  // Errors of init_server().
  ParameterServer(const Worker& worker, const Model& model, const Values& keys);
  ~ParameterServer();
  ParameterServer(ParameterServer&&) noexcept;
  void run();  // run_server()

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// On servers. keys: as for ProgramExecutor, and equal to those of the trainers. The model needs no
// open data. To continue from a checkpoint, the trainers call ProgramExecutor::load(), which gives
// the values to the servers. kUsage on a trainer, or if the model was not minimized; kUnsupported
// naming a key of the job that servers do not support.
ParameterServer init_server(const Worker& worker, const Model& model, const Values& keys = {});
// Serves until all trainers have called stop_worker(), or a signal came before one connected.
// kPeerLost naming a trainer that has gone, kTimeout naming those that did not arrive; kUsage
// naming a difference between this program and a trainer.
void run_server(ParameterServer& server);

// On trainers, or on ranks of a collective job: the executor is connected to all servers, and all
// trainers have the initial values of trainer 0. Errors of ProgramExecutor, and kTimeout and
// kPeerLost naming a server.
ProgramExecutor init_worker(const Worker& worker, const Model& model, const Values& keys = {});
void stop_worker(ProgramExecutor& executor);  // ProgramExecutor::stop_worker()
// ProgramExecutor::save(): trainer 0 receives the states of the optimizer and writes all.
std::string save_persistables(ProgramExecutor& executor, const std::string& folder);
// Ages the rows of all tables on servers by one, and removes those with this age, and those that
// the settings tables.NAME.shrink name. The age of a row is 0 after a step that used it; so a
// threshold of 1 removes all rows. All trainers call it between two steps. threshold: 1 to 511.
// kUnsupported without tables.
void shrink(ProgramExecutor& executor, int64_t threshold);

}  // namespace fleet
