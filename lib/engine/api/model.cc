#include "api/model.h"

#include "api/recipe.h"
#include "base/error.h"
#include "models/model.h"

namespace fleet {

const std::string& Loss::name() const {
  static const std::string name = "loss";
  return name;
}

data::InputPipeline& Loader::pipeline() const {
  if (!recipe_->opened) {
    throw Error(ErrorCode::kUsage, "is not open yet", "loader",
                "make the ProgramExecutor of its model first");
  }
  JobData* data = recipe_->opened->data.get();
  data::InputPipeline* pipeline = !data ? nullptr : train_ ? &data->train() : data->test();
  if (!pipeline) {
    throw Error(ErrorCode::kUsage, "the model has no data of this split", "loader",
                "name it in train_loader(): train.* or test.*");
  }
  return *pipeline;
}

void Loader::start_epoch(int64_t epoch, int64_t first) {
  data::InputPipeline& opened = pipeline();
  opened.start_epoch(epoch, first, recipe_->opened->steps);
}
const data::Batch* Loader::next() { return pipeline().next(); }
int64_t Loader::batches() const { return pipeline().batches(); }
int64_t Loader::samples() const { return pipeline().samples(); }

Model::Model(const std::string& name, const Values& keys) : recipe_(std::make_shared<Recipe>()) {
  model_registry().get(name);  // kUsage naming the nearest known model
  recipe_->tree.set("model.name", name, "Model");
  recipe_->set("model.", keys, "Model");
}

Loader Model::train_loader(const Values& data) {
  recipe_->set("data.", data, "train_loader");
  recipe_->has_data = true;
  return Loader(recipe_, true);
}

Loader Model::test_loader() { return Loader(recipe_, false); }

void Model::own_data(const Shape& image, int64_t batch, int64_t batches_per_epoch) {
  if (image.rank() != 3 || batch < 1 || batches_per_epoch < 0) {
    throw Error(ErrorCode::kUsage,
                "takes channels, height and width of an image, a batch from 1 up, and "
                "batches_per_epoch from 0 up",
                "own_data");
  }
  recipe_->set("data.",
               {{"source", "synthetic"},
                {"pixels", "float32"},
                {"batch_size", batch},
                {"image.channels", image[0]},
                {"image.height", image[1]},
                {"image.width", image[2]}},
               "own_data");
  recipe_->has_data = true;
  recipe_->own_image = image;
  recipe_->batches_per_epoch = batches_per_epoch;
}

}  // namespace fleet
