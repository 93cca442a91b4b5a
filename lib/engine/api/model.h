// A program's training: a network, its data and, after minimize(), its optimizer and strategy.
// Together they form the job that fleet-worker reads from a file (train/job.h), with the same
// names.
#pragma once

#include <memory>
#include <string>

#include "api/value.h"
#include "base/config.h"
#include "data/pipeline.h"
#include "tensor/shape.h"

namespace fleet {

// A job under construction. Model, Loader, Loss and ProgramExecutor share it.
struct Recipe;

// The value that minimize() lowers.
class Loss {
 public:
  explicit Loss(std::shared_ptr<Recipe> recipe) : recipe_(std::move(recipe)) {}
  const std::string& name() const;  // for fetch lists: "loss"
  const std::shared_ptr<Recipe>& recipe() const { return recipe_; }

 private:
  std::shared_ptr<Recipe> recipe_;
};

// Batches of one split, read ahead by host threads. The model's ProgramExecutor opens it: before
// that, every call except copying throws kUsage. For use by one thread.
class Loader {
 public:
  Loader(std::shared_ptr<Recipe> recipe, bool train) : recipe_(std::move(recipe)), train_(train) {}

  // Begins epoch `epoch` at batch `first`. Call it before the first next().
  void start_epoch(int64_t epoch, int64_t first = 0);
  // The next batch of this rank in the epoch, valid until the following call; null at the end of
  // the epoch. The loader owns its memory. Throws errors of reading.
  const data::Batch* next();
  int64_t batches() const;  // per epoch, the same on every rank
  int64_t samples() const;  // over all ranks

 private:
  data::InputPipeline& pipeline() const;

  std::shared_ptr<Recipe> recipe_;
  bool train_;
};

// Copies refer to the same model. Not thread-safe.
class Model {
 public:
  // name: a network in lib/engine/models, or one that the program registered with FLEET_MODEL
  // (models/model.h). keys: the keys below "model." of a job file. kUsage for an unknown name.
  explicit Model(const std::string& name, const Values& keys = {});

  // Data as in the section "data" of a job file: {"source", "image_list"}, {"batch_size", 32},
  // {"train.list", "train.txt"}. For the test split use data.test.* and test_loader().
  Loader train_loader(const Values& data);
  Loader test_loader();
  // Instead of train_loader(): the program makes its own batches (data::Batch: images, labels and
  // size are enough).
  //   image  channels, height, width of normalised float32 images
  //   batch  samples per step and rank
  //   batches_per_epoch  steps of an epoch; 0: unknown. Schedules that count epochs or depend on
  //   the
  //     end of the job need it.
  void own_data(const Shape& image, int64_t batch, int64_t batches_per_epoch = 0);

  Loss loss() const { return Loss(recipe_); }
  const std::shared_ptr<Recipe>& recipe() const { return recipe_; }

 private:
  std::shared_ptr<Recipe> recipe_;
};

}  // namespace fleet
