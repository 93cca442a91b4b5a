// Whole training Programs of small batches, as a strategy makes them, for tests.
#pragma once

#include <string>

#include "models/model.h"
#include "models/training.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {

struct TrainingSetup {
  std::string model = "lenet";
  std::string settings = "{}";                        // of the model, in JSON
  std::string optimizer = R"({"name": "momentum"})";  // in JSON; empty: there are no updates
  OnNan on_nan = OnNan::kContinue;
};

inline Training append_training(Program& program, Strategy& strategy,
                                const TrainingSetup& setup = {}) {
  const ModelDef& def = model_registry().get(setup.model);
  const Training training = build_training(
      program,
      {.model = setup.model,
       .model_settings = ConfigTree::from_json(setup.settings, "test").validate(def.schema),
       .batch = 2,
       .columns = image_columns(def.image)});
  ModelParts parts{.blocks = training.blocks, .devices = training.devices};
  parts.batch.feeds = {training.feed("image"), training.feed("label"), training.feed("weight"),
                       training.feed("sample_key")};
  parts.batch.sums = {training.training_sum("losses"), training.training_sum("counts"),
                      training.evaluation_sum("losses"), training.evaluation_sum("counts")};
  strategy.append_backward(program, training.forward, training.loss, parts);
  if (setup.optimizer.empty()) return training;
  ConfigTree tree = ConfigTree::from_json(setup.optimizer, "test");
  strategy.append_optimizer(training.feed("learning_rate"),
                            tree.validate(optimizer_schema(*tree.peek("name"))), setup.on_nan);
  return training;
}

inline Program trained_program(const std::string& text, const PassContext& context,
                               const TrainingSetup& setup = {}) {
  Strategy strategy = make_strategy(text, context);
  Program program;
  append_training(program, strategy, setup);
  return program;
}

}  // namespace fleet
