// What a program trains: a network, its data, and from minimize() on its optimizer and strategy.
// Together they are the job that fleet-worker reads from a file (train/job.h), with the same names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/value.h"
#include "base/config.h"
#include "data/pipeline.h"
#include "tensor/shape.h"

namespace fleet {

// A job in the making. Model, Loader, Loss and ProgramExecutor share it.
struct Recipe;

// What minimize() lowers.
class Loss {
 public:
  explicit Loss(std::shared_ptr<Recipe> recipe) : recipe_(std::move(recipe)) {}
  const std::string& name() const;  // for fetch lists: "loss"
  const std::shared_ptr<Recipe>& recipe() const { return recipe_; }

 private:
  std::shared_ptr<Recipe> recipe_;
};

// Batches of one split, read ahead by threads of the host. It is opened by the ProgramExecutor of
// its model: before that every call but copying is kUsage. One thread uses it.
class Loader {
 public:
  Loader(std::shared_ptr<Recipe> recipe, bool train) : recipe_(std::move(recipe)), train_(train) {}

  // Begins epoch `epoch` at batch `first`. Needed once before the first next().
  void start_epoch(int64_t epoch, int64_t first = 0);
  // The epoch's next batch of this rank, valid until the following call; null at its end. Its
  // memory is the loader's. Throws what went wrong in reading.
  const data::Batch* next();
  int64_t batches() const;  // an epoch, the same on every rank
  int64_t samples() const;  // of all ranks

 private:
  data::InputPipeline& pipeline() const;

  std::shared_ptr<Recipe> recipe_;
  bool train_;
};

// Copies mean the same model. Not thread-safe.
class Model {
 public:
  // name: of a network in lib/models, or one that the program registered itself with FLEET_MODEL
  // (models/model.h). keys: those below "model." of a job file. kUsage for an unknown name.
  explicit Model(const std::string& name, const Values& keys = {});

  // Data as in the section "data" of a job file: {"source", "image_list"}, {"batch_size", 32},
  // {"train.list", "train.txt"}. Of the test split: data.test.* and test_loader().
  Loader train_loader(const Values& data);
  Loader test_loader();
  // Instead: the program makes its own batches (data::Batch: images, labels and size are enough).
  //   image  channels, height, width of normalised float32 images
  //   batch  samples a step and rank
  void own_data(const Shape& image, int64_t batch);

  Loss loss() const { return Loss(recipe_); }
  const std::shared_ptr<Recipe>& recipe() const { return recipe_; }

 private:
  std::shared_ptr<Recipe> recipe_;
};

}  // namespace fleet
