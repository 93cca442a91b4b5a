// Times of ResNet-50's state: to draw, to save (model and momentum, synced), to copy for a
// save by a thread (the pause of training), and to read back (the weights): prints seconds, the
// best of ROUNDS, which tests/bench/checkpoint.sh compares with safetensors.torch.
//
//   bench_checkpoint_files FOLDER [ROUNDS]
//
// Links: train models optim strategy exec backend_cpu

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tensor/host.h"
#include "tests/bench/times.h"
#include "tests/engine/train/save_checkpoint.h"
#include "train/checkpoint.h"
#include "train/checkpoint_saver.h"
#include "train/initial_weights.h"
#include "train/session.h"

namespace fleet {
namespace {

double seconds_of(auto action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return ms_since(begin) / 1e3;
}

int run(const std::string& root, int rounds) {
  ConfigTree tree = ConfigTree::from_json(R"({
    "model": {"name": "resnet50"},
    "data": {"source": "synthetic", "batch_size": 1,
             "image": {"channels": 3, "height": 224, "width": 224}},
    "optimizer": {"name": "momentum"}})",
                                          "bench");
  HostDevice device;
  Session session(make_job(tree), {.columns = image_columns({3, 224, 224})}, device, nullptr);
  Executor& executor = session.executor();
  const TrainingPosition position{.step = 1, .model = "resnet50"};
  double draw = 1e9, save = 1e9, load = 1e9, pause = 1e9;
  CheckpointSaver saver(root, executor, {}, nullptr);
  for (int round = 0; round < rounds; ++round) {
    draw = std::min(draw, seconds_of([&] { executor.initialize(1); }));
    std::filesystem::remove_all(root);
    save = std::min(save, seconds_of([&] { save_checkpoint(root, position, executor, 1); }));
    pause = std::min(pause, seconds_of([&] { saver.begin(position, {}); }));
    while (!saver.take()) saver.wait_for(std::chrono::seconds(1));
    const std::string weights = *latest_checkpoint(root) + "/model.safetensors";
    load = std::min(load, seconds_of([&] { load_weights(weights, {}, executor); }));
  }
  size_t bytes[2] = {};
  const std::string folder = *latest_checkpoint(root);
  bytes[0] = std::filesystem::file_size(folder + "/model.safetensors");
  bytes[1] = std::filesystem::file_size(folder + "/optimizer.safetensors");
  std::filesystem::remove_all(root);
  std::printf("draw %.4f s\npause %.4f s\nsave %.4f s %zu bytes\nload %.4f s %zu bytes\n", draw,
              pause, save, bytes[0] + bytes[1], load, bytes[0]);
  return 0;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "bench_checkpoint_files FOLDER [ROUNDS]\n");
    return 2;
  }
  return fleet::run(std::string(argv[1]) + "/fleetrun", argc > 2 ? std::atoi(argv[2]) : 3);
}
