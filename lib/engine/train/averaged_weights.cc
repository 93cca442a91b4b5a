#include "train/averaged_weights.h"

#include <algorithm>

#include "base/log.h"
#include "base/number_text.h"
#include "optim/ema.h"
#include "optim/optimizer.h"
#include "optim/swa.h"
#include "train/rank_state.h"

namespace fleet {

namespace {

constexpr char kEmaKey[] = "train.ema.decay", kSwaKey[] = "train.swa.from_epoch";

// If ranks drift apart, their averages would drift apart too.
void check_strategy(const std::string& key, const BuiltProgram& built) {
  const Program& program = built.program;
  const std::string unset = key == "optimizer.name" ? "choose another optimizer" : "set it to 0";
  if (weights_drift(program)) {
    const std::vector<std::string>& acting = built.strategy->names();
    const bool adapts = std::ranges::find(acting, "adaptive_localsgd") != acting.end();
    const std::string name = adapts ? "adaptive_localsgd" : "localsgd";
    throw Error(ErrorCode::kUsage,
                "cannot be combined with " + name +
                    ", where each rank has its own weights between two averages over the ranks",
                key, unset + ", or remove strategy." + name);
  }
  if (!shards_parameters(program)) return;
  const bool stages = built.strategy->context().stages > 1;
  throw Error(
      ErrorCode::kUsage,
      stages ? "cannot be combined with pipeline, where each rank has a part of the model"
             : "cannot be combined with sharding of parameters (sharding_configs.stage 3)",
      key,
      unset + (stages ? ", or remove strategy.pipeline" : ", or set sharding_configs.stage to 2"));
}

// own: the optimizer averages the weights.
void check_one(const Job& job, bool own, const BuiltProgram& built) {
  const std::string key = key_of_averages(job);
  if (own && !key.empty()) {
    throw Error(ErrorCode::kUsage,
                "the optimizer " + job.optimizer.text("name") +
                    " already averages the weights for evaluations",
                key, "set it to 0, or choose another optimizer");
  }
  if (job.train.integer("swa.from_epoch") == 0) return;
  if (job.train.number("ema.decay") > 0) {
    throw Error(ErrorCode::kUsage, "cannot be combined with train.ema", kSwaKey,
                "set one of them to 0: evaluations use one average");
  }
  if (built.strategy->context().servers > 0) {
    throw Error(ErrorCode::kUnsupported, "cannot be combined with parameter servers", kSwaKey,
                "set it to 0, or remove the servers");
  }
}

}  // namespace

std::string key_of_averages(const Job& job) {
  if (job.train.integer("swa.from_epoch") > 0) return kSwaKey;
  return job.train.number("ema.decay") > 0 ? kEmaKey : "";
}

bool evaluates_averages(const Job& job) {
  return !key_of_averages(job).empty() ||
         optimizer_registry().get(job.optimizer.text("name")).averages;
}

void average_weights(const Job& job, int rank, BuiltProgram* built) {
  Program& program = built->program;
  const VarId own_rate = program.find(kAverageRate);
  const std::string key = own_rate != kNoVar ? "optimizer.name" : key_of_averages(job);
  if (key.empty()) return;
  check_one(job, own_rate != kNoVar, *built);
  check_strategy(key, *built);
  const Training& training = built->training;
  if (const int64_t from = job.train.integer("swa.from_epoch"); from > 0) {
    append_swa(program, training.forward, training.evaluate);
    if (rank == 0) {
      spdlog::info("evaluation uses the mean of the weights from epoch {} on ({})", from, key);
      if (const double rate = job.train.number("swa.learning_rate"); rate > 0) {
        spdlog::info("the learning rate goes from the schedule's in epoch {} to {:g} in epoch {}",
                     from, rate, from + job.train.integer("swa.anneal_epochs"));
      }
    }
    return;
  }
  const double decay = job.train.number("ema.decay");
  append_ema(program, training.forward, training.evaluate, program.find_section("optimize"),
             built->strategy->left_out(),
             {.decay = decay,
              .warmup = job.train.boolean("ema.warmup"),
              .gamma = job.train.number("ema.warmup_gamma"),
              .power = job.train.number("ema.warmup_power"),
              .rate = own_rate});
  if (rank != 0) return;
  spdlog::info(
      "evaluation uses the average of the weights ({})",
      own_rate == kNoVar ? "train.ema.decay " + number_text(decay) : job.optimizer.text("name"));
}

std::optional<RateEnding> swa_rate(const Job& job, int64_t steps) {
  const int64_t from = job.train.integer("swa.from_epoch");
  const double rate = job.train.number("swa.learning_rate");
  if (from == 0 || rate == 0) return std::nullopt;
  return RateEnding{.from = from * steps,
                    .steps = job.train.integer("swa.anneal_epochs") * steps,
                    .rate = rate,
                    .linear = job.train.text("swa.anneal") == "linear"};
}

SwaSteps::SwaSteps(const Job& job, const Program& program, int64_t batches)
    : from_(job.train.integer("swa.from_epoch")),
      every_(job.train.integer("swa.every_steps")),
      batches_(batches) {
  const auto& flags = program.flags();
  const auto found = std::ranges::find(flags, kAverageFlag);
  if (from_ > 0 && found != flags.end()) flag_ = static_cast<FlagId>(found - flags.begin());
}

uint64_t SwaSteps::flags(int64_t epoch, int64_t batch, int64_t step) const {
  if (flag_ == kNoFlag || epoch < from_) return 0;
  const bool due = every_ > 0 ? (step + 1) % every_ == 0 : batch + 1 == batches_;
  return due ? uint64_t{1} << flag_ : 0;
}

}  // namespace fleet
