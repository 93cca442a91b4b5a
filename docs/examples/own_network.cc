// A network and data of one's own: a small convolutional network, registered under a name, learns
// which half of an image is bright, from batches that the program makes.
//
//   fleetrun --nproc_per_node=2 ./own_network
#include <fleetrun/api/fleet.h>

#include <cstdio>
#include <random>
#include <vector>

#include "arguments.h"

FLEET_MODEL(halves) {
  def.help = "one convolution, for images of one channel";
  def.image = {1, 8, 8};
  def.schema = fleet::model_schema(2).integer("channels", 8, 1, 1024, "of the convolution");
  def.build = fleet::image_classifier(
      [](fleet::Network& network, fleet::VarId image, const fleet::Settings& settings) {
        fleet::VarId x =
            network.conv2d("conv", image, {.channels = settings.integer("channels"), .padding = 1});
        x = network.relu(network.batch_norm("bn", x));
        x = network.flatten(network.pool(x, {.type = "avg", .kernel = 4, .stride = 4}));
        return network.linear("fc", x, {.features = settings.integer("num_classes")});
      });
}

namespace {

constexpr int64_t kBatch = 16, kSide = 8;

// Labels 0 or 1: the upper or the lower half of an image is brighter.
struct Batches {
  explicit Batches(int rank) : random(static_cast<unsigned>(rank)) {}

  fleet::data::Batch next() {
    std::normal_distribution<float> noise(0, 0.5F);
    for (int64_t i = 0; i < kBatch; ++i) {
      labels[i] = static_cast<int64_t>(random() % 2);
      for (int64_t y = 0; y < kSide; ++y) {
        const float bright = (y < kSide / 2) == (labels[i] == 0) ? 0.5F : -0.5F;
        for (int64_t x = 0; x < kSide; ++x) {
          images[(i * kSide + y) * kSide + x] = bright + noise(random);
        }
      }
    }
    fleet::data::Batch batch;
    batch.images = images;
    batch.labels = labels;
    batch.size = kBatch;
    return batch;
  }

  std::mt19937 random;
  std::vector<float> images = std::vector<float>(kBatch * kSide * kSide);
  std::vector<int64_t> labels = std::vector<int64_t>(kBatch);
};

void run(const Arguments& arguments) {
  const fleet::Worker worker = fleet::init_collective();
  fleet::Model model("halves", {{"channels", arguments.number("channels", 8, 1)}});
  model.own_data({1, kSide, kSide}, kBatch);

  fleet::DistributedStrategy strategy;
  const std::string file = arguments.text("strategy");
  if (!file.empty()) strategy.load_from_prototxt(file);
  fleet::distributed_optimizer(fleet::Adam(0.01), strategy).minimize(model.loss());

  fleet::ProgramExecutor exe(worker, model);
  const std::string folder = arguments.text("resume");
  if (!folder.empty()) exe.load(folder);
  Batches batches(worker.rank());
  const int64_t steps = exe.steps() + arguments.number("steps", 60);
  while (exe.steps() < steps) {
    const fleet::data::Batch batch = batches.next();
    if (exe.steps() + 1 < steps) {
      exe.run(batch);
      continue;
    }
    const auto values = exe.run(batch, {"loss", "acc1"});
    std::printf("worker_index: %d, step%lld cost = %f, acc1 = %f\n", worker.rank(),
                static_cast<long long>(exe.steps() - 1), values[0], values[1]);
  }
  const std::string save = arguments.text("save");
  if (save.empty()) return;
  const std::string saved = exe.save(save);
  if (worker.is_first()) std::printf("saved %s\n", saved.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return run_example("own_network", {"channels", "strategy", "resume", "steps", "save"}, argc, argv,
                     run);
}
