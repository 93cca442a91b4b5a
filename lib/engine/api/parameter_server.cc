#include "api/parameter_server.h"

#include "api/recipe.h"
#include "api/serve.h"
#include "base/error.h"

namespace fleet {

struct ParameterServer::Parts {
  const Worker& worker;
  Job job;
};

static Job job_of_server(const Worker& worker, const Model& model, const Values& keys) {
  if (worker.is_server()) return make_job(tree_of(*model.recipe(), keys, worker.world()));
  throw Error(ErrorCode::kUsage, "this process is a trainer", "init_server",
              "call it where Worker::is_server() holds, and init_worker() elsewhere");
}

ParameterServer::ParameterServer(const Worker& worker, const Model& model, const Values& keys)
    : parts_(new Parts{worker, job_of_server(worker, model, keys)}) {}

ParameterServer::~ParameterServer() = default;
ParameterServer::ParameterServer(ParameterServer&&) noexcept = default;

void ParameterServer::run() {
  serve(parts_->job, parts_->worker.world(), parts_->worker.stop_signal());
}

ParameterServer init_server(const Worker& worker, const Model& model, const Values& keys) {
  return {worker, model, keys};
}

void run_server(ParameterServer& server) { server.run(); }

ProgramExecutor init_worker(const Worker& worker, const Model& model, const Values& keys) {
  return {worker, model, keys};
}

void stop_worker(ProgramExecutor& executor) { executor.stop_worker(); }

std::string save_persistables(ProgramExecutor& executor, const std::string& folder) {
  return executor.save(folder);
}

void shrink(ProgramExecutor& executor, int64_t threshold) { executor.shrink(threshold); }

}  // namespace fleet
