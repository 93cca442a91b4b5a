// Clicks with a table of embeddings on parameter servers: a step moves only the rows of its batch.
// Rows that no step has used between the last two calls of shrink() are removed.
//
//   fleetrun --server_num=2 --worker_num=2 ./train_tables
#include <fleetrun/api/fleet.h>

#include <cstdio>

#include "arguments.h"

namespace {

// Equal on servers and trainers. The section tables as in a job file.
const fleet::Values kKeys = {{"task", "click"},
                             {"train.device", "cpu"},
                             {"train.deterministic", true},
                             {"tables.embedding.rule.name", "dense_adagrad"},
                             {"tables.embedding.rule.learning_rate", 0.1}};

// Generated rows; ids are hashes of 63 bits.
const fleet::Values kClicks = {{"source", "synthetic_clicks"},
                               {"slot_count", 3},
                               {"slot_ids", 100},
                               {"ids", 0},
                               {"deviation", 2},
                               {"batch_size", 32},
                               {"train.samples", 4096},
                               {"test.samples", 1024}};

void train(const fleet::Worker& worker, const fleet::Model& model, fleet::Loader& loader,
           const Arguments& arguments) {
  fleet::ProgramExecutor exe = fleet::init_worker(worker, model, kKeys);
  const std::string resume = arguments.text("resume");
  if (!resume.empty()) exe.load(resume);
  const int64_t steps = arguments.number("steps", 8);
  const int shrink_every = arguments.number("shrink_every", 4, 1);
  const int64_t threshold = arguments.number("threshold", 2, 1);
  loader.start_epoch(0, exe.steps());
  while (exe.steps() < steps) {
    const fleet::data::Batch* const data = loader.next();
    if (!data) break;
    const double loss = exe.run(*data, {"loss"})[0];
    std::printf("trainer %d, step %lld: loss %f\n", worker.rank(),
                static_cast<long long>(exe.steps()), loss);
    std::fflush(stdout);
    // fleet.shrink(threshold)
    if (exe.steps() % shrink_every == 0) fleet::shrink(exe, threshold);
    if (exe.agree_to_stop(worker.wants_to_stop())) break;
  }
  // fleet.save_persistables(exe, dirname)
  const std::string folder = arguments.text("save");
  if (!folder.empty()) fleet::save_persistables(exe, folder);
  fleet::stop_worker(exe);
}

void run(const Arguments& arguments) {
  const fleet::Worker worker = fleet::init_process();
  fleet::Model model("wide_deep", {{"dense", false}, {"dim", 4}, {"hidden", "[16]"}});
  fleet::Loader loader = model.train_loader(kClicks);
  const fleet::Optimizer adagrad("adagrad", 0.05);
  fleet::distributed_optimizer(adagrad, fleet::DistributedStrategy()).minimize(model.loss());
  if (worker.is_server()) {
    fleet::ParameterServer server = fleet::init_server(worker, model, kKeys);
    fleet::run_server(server);
  } else {
    train(worker, model, loader, arguments);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_example("train_tables", {"steps", "save", "resume", "shrink_every", "threshold"}, argc,
                     argv, run);
}
