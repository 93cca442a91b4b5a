#include "train/job.h"

#include <limits>

#include "base/error.h"
#include "comm/factory.h"
#include "exec/backend.h"
#include "strategy/strategy.h"
#include "tensor/device.h"
#include "train/class_weights.h"
#include "train/evaluation_watch.h"
#include "train/job_choices.h"
#include "train/predict.h"

namespace fleet {
namespace {

constexpr double kMany = 9e15;

Schema train_schema() {
  Schema schema;
  schema.integer("epochs", 1, 1, kMany, "how often to go through the training data")
      .integer("max_steps", 0, 0, kMany, "stop after so many steps in all; 0: no limit")
      .integer("fetch_every", 10, 1, kMany, "steps between two lines of loss and accuracy")
      .integer("evaluate_every", 1, 0, kMany, "epochs between two evaluations; 0: never")
      .integer("evaluate_every_steps", 0, 0, kMany,
               "steps between two more evaluations; 0: at the ends of epochs only")
      .boolean("evaluate_only", false,
               "evaluate what checkpoint.resume or checkpoint.weights gives, and end")
      .boolean("evaluate_classes", false,
               "accuracy of each class in metrics.jsonl, and confusion_matrix.csv beside it")
      .integer("seed", 1, 0, kMany, "of initial values, order of samples, augmentation and dropout")
      .number("label_smoothing", 0, 0, 1, "of the loss")
      .integer("ignore_index", -100, -kMany, kMany,
               "samples with this label have loss 0; it need not be a class")
      .choice("class_weights.rule", "", {"", "balanced"},
              "weights of the classes in the loss; balanced: samples / (classes x the class's); "
              "train.class_weights=balanced is short for it")
      .numbers("class_weights.values", {},
               "the same, one for each class, as given; short: train.class_weights=[1, 2.5]")
      .boolean("numeric_stable_mode", true, "of the loss: always so, whatever it says")
      .choice("device", "auto", device_names(),
              "what to compute on; auto: the GPU that this rank was given, or is there")
      .boolean("cuda_graph", true,
               "launch a step as one graph on a GPU; false: its operations one by one")
      .boolean(
          "deterministic", false,
          "the same bits each time: on a GPU only algorithms that repeat, on a CPU one thread a "
          "rank (else bits depend on OMP_NUM_THREADS)")
      .boolean("check_nan_inf", false,
               "look at what each operation made, and end at the first value that is not finite")
      .choice(
          "on_nan", "stop", {"stop", "skip", "continue"},
          "where the loss or a gradient is infinite or NaN: end the job, leave the update out, or "
          "go on; a scaled loss (amp in float16) leaves it out always")
      .integer("compare_ranks_every", 100, 0, kMany,
               "steps between two comparisons of the parameters of all ranks; 0: never")
      .boolean("enable_cublas_tensor_op_math", false,
               "TF32 for float32 products and convolutions on a GPU")
      .number("fraction_of_gpu_memory_to_use", DeviceOptions().memory_fraction, 0.01, 1,
              "of the GPU's memory that a rank may take")
      .text("name", "", "of the job; where none is given, the job file's without its ending")
      .text("output", "",
            "folder of the run: metrics.jsonl and checkpoints; where none is given, "
            "output/NAME/run-001, then run-002...; output/NAME/latest leads to the newest");
  add_early_stopping_keys(&schema);
  schema
      .number("ema.decay", 0, 0, 0.9999999,
              "of an average of the weights over the updates, which evaluation uses; 0: none; "
              "train.ema=0.999 is short for it")
      .boolean("ema.warmup", false,
               "the decay begins small: 1 - (1 + updates / warmup_gamma) ^ -warmup_power")
      .number("ema.warmup_gamma", 1, 1e-6, kMany, "of train.ema.warmup")
      .number("ema.warmup_power", 2.0 / 3, 1e-6, 100, "of train.ema.warmup");
  return schema;
}

Schema checkpoint_schema() {
  Schema schema;
  schema.integer("every_steps", 0, 0, kMany, "steps between two checkpoints; 0: not by steps")
      .integer("every_epochs", 0, 0, kMany, "epochs between two checkpoints; 0: not by epochs")
      .boolean("at_end", true, "save when training ends or is asked to stop")
      .integer("keep", 3, 0, kMany, "how many to keep; 0: all")
      .text("resume", "no",
            "\"auto\": go on from the newest in the output folder; a folder: from that; \"no\"")
      .text("weights", "",
            "file with parameters to start from, under torchvision's names: safetensors, or "
            "torch.save()'s "
            "(.pth, .pt)")
      .texts("weights_skip", {},
             "parameters that keep their initial values, as shell patterns: [\"fc.*\"] for a head "
             "of one's own");
  add_keep_best_keys(&schema);
  return schema;
}

}  // namespace

Schema job_schema(const ConfigTree& tree) {
  Schema schema;
  schema.section("", chosen_sections(tree))
      .section("train", train_schema())
      .section("checkpoint", checkpoint_schema())
      .section("predict", predict_schema())
      .section("comm", comm_schema())
      .section("strategy", strategy_schema());
  return schema;
}

void name_keys(ConfigTree& tree) {
  if (tree.peek("data.use_dali")) tree.rename("data.use_dali", "strategy.use_dali");
  name_evaluation_keys(&tree);
  if (tree.peek("train.ema")) tree.rename("train.ema", "train.ema.decay");
  name_class_weights(&tree);
  name_strategy_fields("strategy", &tree);
}

// Paddle's executor runs so many iterations a call, of which the last can be looked at: losses are
// read after multiples of them.
static void fetch_with_runs(const Settings& settings, ConfigTree* tree) {
  const std::string key = "strategy.execution_strategy.num_iteration_per_run";
  const int64_t run = settings.integer(key), every = settings.integer("train.fetch_every");
  if (every % run == 0) return;
  tree->set("train.fetch_every", std::to_string((every / run + 1) * run), key);
}

Job make_job(const ConfigTree& given) {
  ConfigTree tree = given;
  name_keys(tree);
  take_strategy_file("strategy", &tree);
  refuse_keys_of_others(tree);
  Job job;
  fetch_with_runs(tree.validate(job_schema(tree)), &tree);
  job.settings = tree.validate(job_schema(tree));
  job.model = job.settings.section("model");
  job.data = job.settings.section("data");
  job.optimizer = job.settings.section("optimizer");
  job.schedule = job.settings.section("learning_rate");
  job.train = job.settings.section("train");
  job.checkpoint = job.settings.section("checkpoint");
  job.comm = job.settings.section("comm");
  job.strategy = job.settings.section("strategy");
  job.model_name = job.settings.text("model.name");
  return job;
}

}  // namespace fleet
