// Runs the training steps of a model whose loss was given to minimize().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/model.h"
#include "api/worker.h"
#include "train/checkpoint.h"
#include "train/metric_sums.h"

namespace fleet {

class Schedule;
class StepRunner;
struct Opened;

// All ranks make the same calls in the same order; only the thread that made it drives it. Throws
// fleet::Error: kPeerLost where another rank died, kNoMemory with the batch that would fit. Where
// train.on_nan is not "continue", an update whose loss or gradients are not finite is left out;
// with "stop", the default, the next run() that fetches, or save(), then throws NotFiniteError
// (train/finite_watch.h) on all ranks.
class ProgramExecutor {
 public:
  // Opens device, communicators and data, builds Program and Plan, compares them with the other
  // ranks', draws initial values and gives rank 0's to all: what Paddle's startup program does. One
  // a Worker, which must outlive it.
  //   keys  more of a job file: {"train.seed", 3}, {"train.device", "cpu"}, {"comm.timeout", 60}
  // kUsage where the model was not minimized; errors of fleet-worker at its start.
  ProgramExecutor(const Worker& worker, const Model& model, const Values& keys = {});
  ~ProgramExecutor();

  // A training step, without looking at its results. Returns when the batch's memory may be used
  // anew: a GPU may still compute.
  void run(const data::Batch& batch);
  // The same, and the values of these names, in their order: "loss" (the batch's mean on this
  // rank), "acc1", "acc5" (or of as many as there are classes), "loss_scaling" (1 where it is not
  // scaled), "learning_rate". Waits for the step. kUsage naming the known ones.
  std::vector<double> run(const data::Batch& batch, const std::vector<std::string>& fetch_list);
  // Loss and accuracy of the whole test split over all ranks.
  MetricSums evaluate(Loader& test);

  // Of the next steps, in place of the optimizer's own.
  void set_learning_rate(double rate) { own_rate_ = rate; }
  int64_t steps() const { return position_.step; }  // trained so far
  // Tells the others whether this rank wishes to end; true on all ranks after the same step.
  bool agree_to_stop(bool wish);
  void wait();  // until all that was issued is done

  // Writes a checkpoint below `root`, as fleet-worker does, of which the newest `keep` stay (0:
  // all). Its folder on rank 0, "" elsewhere. Errors of save_on_all_ranks(); NotFiniteError where a
  // parameter or state is not finite.
  std::string save(const std::string& root, int keep = 3);
  // Reads one: a folder that save() returned, or the newest below a root. The loader goes on at
  // start_epoch(epoch, batch) of what it returns. kUsage where it is of another model, kNotFound.
  TrainingPosition load(const std::string& folder);
  // Parameters and running statistics only, from a safetensors file under torchvision's names.
  void load_weights(const std::string& path);

  // A parameter, state or metric by its name in the Program. Waits. kUsage where it has none.
  std::vector<float> values(const std::string& name);
  std::string program_text() const;  // as --print_program
  std::string device() const;        // "cpu", "cuda:0"

 private:
  void complete(const data::Batch& batch);
  void train(const data::Batch& batch, bool fetch);
  void look_for_nan();
  double fetched(const std::string& name, const MetricSums& sums);

  const World& world_;
  Job job_;
  std::shared_ptr<Opened> opened_;
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<Schedule> schedule_;
  TrainingPosition position_;
  int64_t batch_size_ = 0;
  std::optional<double> own_rate_;
  double rate_ = 0;             // of the step before
  data::Batch batch_;           // the one at hand, complete
  std::vector<float> weights_;  // where it has none
  std::vector<uint64_t> keys_;  // the same
};

}  // namespace fleet
