#include "train/job.h"

#include "base/config_value.h"
#include "comm/factory.h"
#include "data/augment.h"
#include "data/pipeline.h"
#include "exec/backend.h"
#include "strategy/strategy.h"
#include "tensor/device.h"
#include "train/class_weights.h"
#include "train/evaluation_tracker.h"
#include "train/freezing.h"
#include "train/job_choices.h"
#include "train/predict.h"

namespace fleet {
namespace {

constexpr double kMany = 9e15;

Schema train_schema() {
  Schema schema;
  schema.integer("epochs", 1, 1, kMany, "passes over the training data")
      .integer("max_steps", 0, 0, kMany,
               "total number of steps after which training stops; 0: no limit")
      .integer("fetch_every", 10, 1, kMany, "steps between two lines of loss and accuracy")
      .integer("evaluate_every", 1, 0, kMany, "epochs between two evaluations; 0: never")
      .integer("evaluate_every_steps", 0, 0, kMany,
               "steps between two additional evaluations; 0: only at the ends of epochs")
      .boolean("evaluate_only", false,
               "only evaluate the newest checkpoint, or the weights that another setting names; "
               "makes no run")
      .integer("seed", 1, 0, kMany,
               "random seed for initial values, order of samples, augmentation and dropout")
      .choice("weights_dtype", "float32", {"float32", "bfloat16"},
              "type in which parameters and the optimizer's states are stored; bfloat16: 8 bytes a "
              "parameter with strategy.amp and Adam instead of 16, rounded stochastically")
      .boolean("numeric_stable_mode", true,
               "no effect, accepted for compatibility with Paddle: the loss is always numerically "
               "stable")
      .choice("device", "auto", device_names(),
              "device to compute on; auto: the GPU assigned to this rank, else any available GPU, "
              "else the CPU")
      .boolean("cuda_graph", true,
               "launch a step as one graph on a GPU; false: launch its operations one by one")
      .boolean("deterministic", false,
               "bitwise reproducible results: on a GPU only deterministic algorithms, on a CPU one "
               "thread per rank (else results depend on OMP_NUM_THREADS)")
      .boolean(
          "check_nan_inf", false,
          "check the results of each operation, and end the job at the first infinite or NaN value")
      .choice("on_nan", "stop", {"stop", "skip", "continue"},
              "action if the loss or a gradient is infinite or NaN: end the job, skip the update, "
              "or continue; with loss scaling (amp in float16), the update is always skipped")
      .integer("max_skipped_updates", 50, 0, kMany,
               "updates in a row that may be skipped because the loss is infinite or NaN, or a "
               "gradient is although the loss scale has fallen to 1; then the job ends with 118, "
               "unless on_nan is continue; 0: never")
      .integer("compare_ranks_every", 100, 0, kMany,
               "steps between two comparisons of the parameters of all ranks; 0: never")
      .boolean("enable_cublas_tensor_op_math", false,
               "use TF32 for float32 products and convolutions on a GPU")
      .boolean("cudnn_attention", true,
               "on a GPU, compute attention in 16-bit types through cuDNN where it has a plan; "
               "false: by the kernels of this project")
      .number("fraction_of_gpu_memory_to_use", 0.92, 0.01, 1,
              "fraction of the GPU's memory that a rank may use")
      .text("name", "", "name of the job; default: name of the job file without its extension")
      .text("output", "",
            "folder of the run, for metrics.jsonl and checkpoints; default: output/NAME/run-001, "
            "then run-002...; the link output/NAME/latest points to the newest")
      .as_path();
  schema
      .boolean(
          "tensorboard", true,
          "write event files for TensorBoard into output/NAME/tensorboard/RUN, or into the folder "
          "tensorboard of train.output")
      .boolean("tensorboard_gradients", false,
               "also write a histogram of the norms of the parameters' gradients, every "
               "train.fetch_every steps; keeps all gradients in memory");
  add_early_stopping_keys(&schema);
  schema
      .number("ema.decay", 0, 0, 0.9999999,
              "decay of the exponential moving average of the weights, which evaluation uses; 0: "
              "no average; train.ema=0.999 is the short form")
      .boolean("ema.warmup", false,
               "increase the decay gradually: 1 - (1 + updates / warmup_gamma) ^ -warmup_power")
      .number("ema.warmup_gamma", 1, 1e-6, kMany,
              "value of warmup_gamma in the formula of train.ema.warmup")
      .number("ema.warmup_power", 2.0 / 3, 1e-6, 100,
              "value of warmup_power in the formula of train.ema.warmup");
  schema
      .integer("swa.from_epoch", 0, 0, kMany,
               "stochastic weight averaging: the first epoch after which the weights are averaged, "
               "for evaluation; 0: no average; train.swa=5 is the short form")
      .integer("swa.every_steps", 0, 0, kMany,
               "from that epoch on, steps between two updates of the average; 0: one after each "
               "epoch")
      .integer("swa.statistics_batches", 0, -1, kMany,
               "batches of training data for the running statistics of batch norms that fit the "
               "averaged weights, before each evaluation and at the end; 0: all of an epoch; -1: "
               "none, the last weights' statistics are used")
      .number("swa.learning_rate", 0, 0, 1e6,
              "learning rate at which the averaged weights are trained (SWALR's swa_lr); 0: the "
              "schedule's")
      .integer("swa.anneal_epochs", 10, 0, kMany,
               "epochs from train.swa.from_epoch on in which the rate changes from the schedule's "
               "to train.swa.learning_rate; 0: at once")
      .choice("swa.anneal", "cos", {"cos", "linear"},
              "form of that change: half a cosine, or a line");
  schema
      .number("sam.rho", 0, 0, kMany,
              "sharpness-aware minimisation: distance at which the gradient is taken, from the "
              "weights along their gradient; 0: at the weights; train.sam=0.05 is the short form")
      .boolean("sam.adaptive", false, "measure train.sam.rho in units of each weight (ASAM)");
  schema
      .boolean("frozen_batch_norm", true,
               "batch norms whose parameters are frozen use their running statistics, which stay "
               "as they are; false: they use the batch's, and the running ones change")
      .texts("unfreeze_at", {},
             "epoch from which parameters of optimizer.frozen are trained after all: 2, in steps "
             "\"500 steps\", or in parts [\"1: layer4.*\", \"2: layer3.* layer2.*\"]");
  return schema;
}

Schema checkpoint_schema() {
  Schema schema;
  schema.integer("every_steps", 0, 0, kMany, "steps between two checkpoints; 0: none by steps")
      .integer("every_epochs", 0, 0, kMany, "epochs between two checkpoints; 0: none by epochs")
      .boolean("at_end", true, "save a checkpoint when training ends or is stopped")
      .integer("keep", 3, 0, kMany, "number of checkpoints to keep; 0: all")
      .integer("table_deltas", 0, 0, 1000,
               "checkpoints between two with whole tables of parameter servers: they have only the "
               "rows that changed since the last whole ones, which are kept with them")
      .text(
          "resume", "no",
          "\"auto\": resume from the newest checkpoint in train.output, or of the newest run that "
          "has one; a folder: resume from that checkpoint; \"no\": start from the beginning")
      .as_path()
      .boolean(
          "new_data", false,
          "with resume: training data and global batch may be others than the checkpoint's, "
          "such as longer texts; then a new epoch begins, and weights, optimizer, schedule and "
          "steps continue")
      .text("weights", "",
            "parameters to start from, under torchvision's, timm's or our names: a file "
            "(safetensors, or torch.save()'s .pth, .pt, .pth.tar), or a folder of timm's or a "
            "checkpoint's. Keys that the job leaves out follow from their record")
      .as_path()
      .boolean("weights_ema", false,
               "take the average of the weights that the file has: state_dict_ema of timm's "
               "training, or a checkpoint's ema.safetensors")
      .texts("weights_skip", {},
             "parameters that keep their initial values, as shell patterns: [\"fc.*\"] for a new "
             "head");
  add_keep_best_keys(&schema);
  return schema;
}

}  // namespace

Registry<JobSectionDef>& job_sections() {
  static Registry<JobSectionDef> registry("section");
  return registry;
}

Schema job_schema(const ConfigTree& tree) {
  Schema schema = Schema()
                      .section("", chosen_sections(tree))
                      .section("train", train_schema())
                      .section("checkpoint", checkpoint_schema())
                      .section("predict", predict_schema())
                      .section("comm", comm_schema())
                      .section("strategy", strategy_schema());
  for (const std::string& name : job_sections().names()) {
    schema.section("", job_sections().get(name).schema(tree));
  }
  return schema;
}

// The sections tables.NAME.
static std::vector<JobTable> tables_of(const ConfigTree& tree, const Settings& settings) {
  const std::string start = "tables.";
  std::vector<JobTable> tables;
  for (const std::string& path : tree.paths(start)) {
    const std::string name = path.substr(start.size(), path.find('.', start.size()) - start.size());
    if (!tables.empty() && tables.back().name == name) continue;
    const std::string dim = start + name + ".dim";
    tables.push_back({name, settings.given(dim) ? settings.integer(dim) : 0});
  }
  return tables;
}

void canonicalize_keys(ConfigTree& tree) {
  if (tree.peek("data.use_dali")) tree.rename("data.use_dali", "strategy.use_dali");
  expand_evaluation_keys(&tree);
  if (tree.peek("train.ema")) tree.rename("train.ema", "train.ema.decay");
  if (tree.peek("train.swa")) tree.rename("train.swa", "train.swa.from_epoch");
  if (tree.peek("train.sam")) tree.rename("train.sam", "train.sam.rho");
  expand_class_weights(&tree);
  expand_unfreeze_at(&tree);
  data::expand_reader_keys(&tree);
  canonicalize_strategy_fields("strategy", &tree);
}

// Paddle's executor runs this number of iterations per call, and only the results of the last one
// are visible: losses are read after multiples of it.
static void fetch_with_runs(const Settings& settings, ConfigTree* tree) {
  const std::string key = "strategy.execution_strategy.num_iteration_per_run";
  const int64_t run = settings.integer(key), every = settings.integer("train.fetch_every");
  if (every % run == 0) return;
  tree->set("train.fetch_every", std::to_string((every / run + 1) * run), key);
}

Job make_job(const ConfigTree& given) {
  ConfigTree tree = given;
  canonicalize_keys(tree);
  add_strategy_file_fields("strategy", &tree);
  for (const std::string& name : job_sections().names()) {
    tree.remove(name + config::kEmptyObject);  // "tables": {}
  }
  refuse_keys_of_others(tree);
  Job job;
  const Settings first = tree.validate(job_schema(tree));
  fetch_with_runs(first, &tree);
  add_followed_metrics(first, &tree);
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
  job.task = job.settings.text("task");
  job.tables = tables_of(tree, job.settings);
  data::check_normalization(job.data.numbers("mean"), job.data.numbers("std"));
  return job;
}

}  // namespace fleet
