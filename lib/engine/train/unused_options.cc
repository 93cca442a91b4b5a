#include "train/unused_options.h"

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "ops/embedding.h"
#include "optim/parameter_groups.h"
#include "strategy/served_tables.h"
#include "train/class_weights.h"
#include "train/freezing.h"
#include "train/job_task.h"
#include "train/language_weights.h"

namespace fleet {
namespace {

class Lines {
 public:
  explicit Lines(const Job& job) : given_(job.settings) {}
  // If `when`: adds a line about those of the keys that are given.
  void add(bool when, const std::vector<std::string>& keys, const std::string& why) {
    std::vector<std::string> unused;
    for (const std::string& key : keys) {
      if (when && given_.has(key) && given_.given(key)) unused.push_back(key);
    }
    if (unused.empty()) return;
    lines_.push_back(join(unused, ", ") + (unused.size() == 1 ? " has" : " have") +
                     " no effect: " + why);
  }
  void add_if(bool when, const std::string& line) {
    if (when) lines_.push_back(line);
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  const Settings& given_;
  std::vector<std::string> lines_;
};

void add_data(const Job& job, Lines* lines) {
  const std::string& source = job.data.text("source");
  lines->add(!job.data.boolean("async"),
             {"data.threads", "data.prefetch", "data.auto.threads", "data.auto.prefetch"},
             "data.async is false: one thread makes batches on demand");
  lines->add(source == "synthetic", {"data.root"}, "the source synthetic reads no files");
  lines->add(source == "synthetic" || source == "idx", {"data.on_damaged"},
             "images of the source " + source + " are not decoded");
  lines->add(source == "synthetic" || source == "idx", {"data.cache", "data.cache_memory"},
             "images of the source " + source + " are not decoded");
  lines->add(job.data.text("cache") == "none", {"data.cache_memory"}, "data.cache is none");
  lines->add(job.data.boolean("auto.threads"), {"data.threads"}, "data.auto.threads decides");
  lines->add(job.data.number("validation_split") == 0, {"data.validation_seed"},
             "data.validation_split is 0");
  if (source == "idx" && job.data.number("validation_split") > 0) {
    lines->add_if(
        true,
        "data.validation_split: evaluation uses a part of the training images, and the test "
        "images of the folder (" +
            job.data.text("test.images") + ") are not read");
  }
  lines->add(!job.data.boolean("augment.random_resized_crop"),
             {"data.augment.random_resized_crop_scale", "data.augment.random_resized_crop_ratio"},
             "data.augment.random_resized_crop is false");
  const auto in_float = [&](const char* key) {
    const std::string& filter = job.data.text(key);
    return filter == "float_bilinear" || filter == "same";
  };
  lines->add(in_float("interpolation") && in_float("augment.interpolation"), {"data.pass_order"},
             "data.interpolation is float_bilinear");
  lines->add(job.data.integer("augment.rand_augment.operations") == 0,
             {"data.augment.rand_augment.magnitude", "data.augment.rand_augment.bins"},
             "data.augment.rand_augment.operations is 0");
  lines->add(job.data.number("augment.random_erasing.probability") == 0,
             {"data.augment.random_erasing.scale", "data.augment.random_erasing.ratio",
              "data.augment.random_erasing.fill"},
             "data.augment.random_erasing.probability is 0");
}

void add_training(const Job& job, const JobFacts& facts, Lines* lines) {
  lines->add(job.checkpoint.text("resume") == "no", {"checkpoint.new_data"},
             "checkpoint.resume is no");
  lines->add(!facts.evaluates,
             {"train.evaluate_every", "train.evaluate_every_steps", "train.evaluate_classes",
              "train.metrics"},
             "there are no test data (data.test)");
  lines->add(!job.train.boolean("tensorboard"), {"train.tensorboard_gradients"},
             "train.tensorboard is false");
  const int64_t most = job.train.integer("max_steps");
  lines->add_if(facts.steps > 0 && most > facts.steps,
                "train.max_steps " + std::to_string(most) +
                    " is not reached: " + std::to_string(job.train.integer("epochs")) +
                    " epochs are " + std::to_string(facts.steps) + " steps; train.epochs decides");
  const bool saves = job.checkpoint.boolean("at_end") ||
                     job.checkpoint.integer("every_steps") > 0 ||
                     job.checkpoint.integer("every_epochs") > 0 ||
                     !job.checkpoint.text("keep_best.metric").empty();
  lines->add(!saves, {"checkpoint.keep"}, "nothing is saved");
  lines->add(job.tables.empty(), {"checkpoint.table_deltas"}, "the job has no section tables");
  lines->add(job.checkpoint.text("keep_best.metric").empty(), {"checkpoint.keep_best.mode"},
             "checkpoint.keep_best.metric is not set");
  lines->add(job.train.text("early_stopping.metric").empty(),
             {"train.early_stopping.mode", "train.early_stopping.patience",
              "train.early_stopping.min_delta"},
             "train.early_stopping.metric is not set");
  lines->add(job.train.number("ema.decay") == 0,
             {"train.ema.warmup", "train.ema.warmup_gamma", "train.ema.warmup_power"},
             "train.ema.decay is 0");
  lines->add(!job.train.boolean("ema.warmup"), {"train.ema.warmup_gamma", "train.ema.warmup_power"},
             "train.ema.warmup is false");
  lines->add(job.train.integer("swa.from_epoch") == 0,
             {"train.swa.every_steps", "train.swa.statistics_batches", "train.swa.learning_rate",
              "train.swa.anneal_epochs", "train.swa.anneal"},
             "train.swa.from_epoch is 0");
  lines->add(job.train.integer("swa.from_epoch") > 0 && job.train.number("swa.learning_rate") == 0,
             {"train.swa.anneal_epochs", "train.swa.anneal"}, "train.swa.learning_rate is 0");
  lines->add(job.train.number("sam.rho") == 0, {"train.sam.adaptive"}, "train.sam.rho is 0");
  lines->add(job.checkpoint.text("weights").empty() && model_weights(job).empty(),
             {"checkpoint.weights_skip"}, "no weights are given (checkpoint.weights)");
  lines->add(facts.world == 1, {"comm.backend", "comm.timeout", "train.compare_ranks_every"},
             "the job has one rank");
  // A job file may keep them for later use.
  std::vector<std::string> typed;
  const bool evaluates_only = job.train.boolean("evaluate_only");
  for (const char* key : {"predict.checkpoint", "predict.output", "predict.format", "predict.top_k",
                          "predict.embedding", "predict.normalize", "predict.average",
                          "predict.cam", "predict.cam_class", "predict.cam_style"}) {
    if (evaluates_only && key == std::string("predict.checkpoint")) continue;
    if (job.settings.origin(key) == "--set") typed.emplace_back(key);
  }
  lines->add(job.settings.texts("predict.input").empty(), typed,
             std::string("nothing is to be predicted (predict.input, --predict): the job ") +
                 (evaluates_only ? "evaluates" : "trains"));
  lines->add_if(
      weighs_classes(job) && job.train.text("class_weights.rule") == "balanced" &&
          job.data.text("sampling") == "balanced",
      "train.class_weights and data.sampling are both balanced: rare classes count twice; "
      "remove one of them");
  const int64_t classes = classes_of(job);
  lines->add_if(facts.data_classes > 0 && facts.data_classes < classes,
                "the model has " + std::to_string(classes) + " classes, the training data name " +
                    std::to_string(facts.data_classes) + " (model.num_classes)");
}

void add_optimizer(const Job& job, const JobFacts& facts, Lines* lines) {
  const std::vector<ParameterGroup> groups = parameter_groups(job.optimizer);
  const bool decays = job.optimizer.number("weight_decay") > 0 ||
                      std::any_of(groups.begin(), groups.end(), [](const ParameterGroup& group) {
                        return group.weight_decay.value_or(0) > 0;
                      });
  lines->add(!decays, {"optimizer.exclude_from_weight_decay", "optimizer.weight_decay_exclude_1d"},
             groups.empty() ? "optimizer.weight_decay is 0"
                            : "optimizer.weight_decay is 0, also in optimizer.groups");
  const std::string never =
      FreezingPhases(job).not_reached(job.train.integer("epochs"), facts.steps);
  lines->add_if(!never.empty(), "train.unfreeze_at: " + never + " is not reached (train.epochs)");
  const int64_t averaged = job.train.integer("swa.from_epoch");
  lines->add_if(averaged >= job.train.integer("epochs"),
                "train.swa.from_epoch " + std::to_string(averaged) +
                    " is not reached: the weights are not averaged (train.epochs)");
  const std::string& rule = job.optimizer.text("name");
  lines->add(rule == "momentum" && job.optimizer.number("momentum") == 0,
             {"optimizer.use_nesterov"}, "optimizer.momentum is 0");
  const std::string& schedule = job.schedule.text("name");
  lines->add(schedule == "constant" || schedule == "plateau", {"learning_rate.per"},
             "the schedule " + schedule + " does not depend on the step");
}

}  // namespace

std::vector<std::string> unused_options(const Job& job, const JobFacts& facts) {
  Lines lines(job);
  add_data(job, &lines);
  add_training(job, facts, &lines);
  add_optimizer(job, facts, &lines);
  return lines.take();
}

std::vector<std::string> unused_parameter_names(const Job& job, const Program& program) {
  using Fits = std::function<bool(const std::string& parameter, const std::string& part)>;
  std::vector<std::string> lines;
  const auto check = [&](const std::string& key, const Fits& fits) {
    for (const std::string& part : job.optimizer.texts(key)) {
      bool found = false;
      for (VarId id = 0; id < program.var_count() && !found; ++id) {
        const Var& var = program.var(id);
        found = var.kind == VarKind::kParameter && fits(var.name, part);
      }
      if (!found) lines.push_back("optimizer." + key + ": no parameter matches '" + part + "'");
    }
  };
  check("exclude_from_weight_decay", [](const std::string& name, const std::string& part) {
    return name.find(part) != std::string::npos;
  });
  if (job.optimizer.text("name") == "lamb") {
    check("exclude_suffixes",
          [](const std::string& name, const std::string& part) { return name.ends_with(part); });
  }
  return lines;
}

std::vector<std::string> unused_table_keys(const Job& job, const Program& program) {
  const std::vector<ServedTable> served = served_tables(program);
  const auto elsewhere = [&](const Op& op) {
    return !op.attributes.has(kTable) || std::ranges::find(served, op.attributes.text(kTable),
                                                           &ServedTable::name) != served.end();
  };
  Lines lines(job);
  lines.add(!served.empty() && std::ranges::all_of(program.ops(), elsewhere),
            {"model.sparse_embedding"},
            "parameter servers hold all tables of the model, and update the rows of a step");
  for (const ServedTable& table : served) {
    const std::string shrink = "tables." + table.name + ".shrink.";
    const Settings& settings = job.settings;
    const bool never = settings.integer(shrink + "every_steps") == 0;
    lines.add(never, {shrink + "age", shrink + "ttl"}, shrink + "every_steps is 0");
    lines.add(!never && settings.integer(shrink + "age") == 0 &&
                  settings.integer(shrink + "ttl") == 0 && !settings.boolean(shrink + "by_score"),
              {shrink + "every_steps"}, "neither age, ttl nor by_score is set");
  }
  return lines.take();
}

}  // namespace fleet
