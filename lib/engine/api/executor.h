// Runs the training steps of a model whose loss was passed to minimize().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/model.h"
#include "api/worker.h"
#include "models/metrics.h"
#include "train/checkpoint.h"

namespace fleet {

class StepRunner;
struct ProgramResources;

// All ranks make the same calls in the same order, from the thread that created the executor.
// Throws fleet::Error: kPeerLost if another rank died, kNoMemory with the batch size that would
// fit. Unless train.on_nan is "continue", an update whose loss or gradients are not finite is left
// out; with "stop", the default, the next run() that fetches, or save(), then throws NotFiniteError
// (train/finite_check.h) on all ranks; or, if the parameters of one rank differ from the others'
// (bad memory), kInternal there and kPeerLost on the others, unless train.compare_ranks_every is 0.
class ProgramExecutor {
 public:
  // Opens device, communicators and data, builds Program and Plan, compares them with the other
  // ranks', draws initial values and broadcasts rank 0's: the work of Paddle's startup program. One
  // per Worker, which must outlive it.
  //   keys  other keys of a job file: {"train.seed", 3}, {"train.device", "cpu"}
  // kUsage if the model was not minimized; also the errors of fleet-worker at its start.
  ProgramExecutor(const Worker& worker, const Model& model, const Values& keys = {});
  ~ProgramExecutor();

  // Runs a training step without reading its results. Returns as soon as the memory of the batch
  // may be reused; a GPU may still be computing. kUsage if a span of the batch has another size.
  void run(const data::Batch& batch);
  // The same, and returns the values of these names, in order: the task's metrics
  // of the batch on this rank ("loss", "acc1", and "acc5" of more than 5 classes), "loss_scaling"
  // (1 without loss scaling), "learning_rate". Waits for the step. kUsage naming the known names.
  std::vector<double> run(const data::Batch& batch, const std::vector<std::string>& fetch_list);
  // Metrics of the whole test split over all ranks.
  MetricSums evaluate(Loader& test);

  // Applies to the following steps, instead of the optimizer's own schedule.
  void set_learning_rate(double rate) { own_rate_ = rate; }
  int64_t steps() const;  // trained so far
  // Tells the other ranks whether this rank wants to end; true on all ranks after the same step.
  bool agree_to_stop(bool stop);
  void wait();  // until all submitted work is done
  // The last call on each trainer of a job with parameter servers, which then end; without servers
  // it does nothing. A trainer that ends without it counts as lost.
  void stop_worker();

  // Writes a checkpoint below `root`, as fleet-worker does, and keeps the newest `keep` (0: all).
  // Returns its folder on rank 0, "" elsewhere. Errors of save_on_all_ranks(); NotFiniteError if a
  // parameter or state is not finite.
  std::string save(const std::string& root, int keep = 3);
  // Removes rows of tables on parameter servers: see shrink() (api/parameter_server.h).
  void shrink(int64_t threshold);
  // Reads a checkpoint: a folder that save() returned, or the newest below a root. To continue,
  // call start_epoch(epoch, batch) of the loader with the returned position. kUsage if the
  // checkpoint is of another model, global batch, seed or validation split; kNotFound.
  TrainingPosition load(const std::string& folder);
  // Reads only parameters and running statistics, from a file as checkpoint.weights names it,
  // except for those that the executor's key checkpoint.weights_skip names. kUsage naming the file.
  void load_weights(const std::string& path);

  // A parameter, state or metric by its name in the Program. Waits for the steps. kUsage if no
  // value has that name.
  std::vector<float> values(const std::string& name);
  std::string program_text() const;  // as --print_program
  std::string device() const;        // "cpu", "cuda:0"

 private:
  void check_sizes(const data::Batch& batch);
  void complete(const data::Batch& batch);
  void train(const data::Batch& batch, bool fetch);
  void check_for_nan();
  std::string save_with(const MoreFiles& files, const std::string& root, int keep,
                        const JobRank& own);
  [[noreturn]] void end_for_nan(const std::string& what, int64_t step, int suspect,
                                const std::string& next);
  double fetched(const std::string& name, const MetricSums& sums);

  const World& world_;
  Job job_;
  std::shared_ptr<ProgramResources> opened_;
  std::unique_ptr<StepRunner> runner_;
  int64_t batch_size_ = 0;
  std::optional<double> own_rate_;
  double rate_ = 0;                          // in the previous step
  data::Batch batch_;                        // the current batch, completed
  std::vector<float> weights_, own_shares_;  // used if the batch has none
  std::vector<uint64_t> keys_;               // used if the batch has none
};

}  // namespace fleet
