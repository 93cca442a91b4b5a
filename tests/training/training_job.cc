#include "tests/training/training_job.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "node/reserved_ports.h"
#include "tests/test_paths.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

constexpr char kLenetJob[] = R"({
  "model": {"name": "lenet", "num_classes": 10},
  "data": {"source": "synthetic", "image": {"channels": 1, "height": 28, "width": 28},
           "train": {"samples": 1280}, "test": {"samples": 90}},
  "optimizer": {"name": "momentum", "momentum": 0.9, "weight_decay": 1e-4},
  "learning_rate": {"name": "constant", "base": 0.01},
  "train": {"epochs": 1, "fetch_every": 5}
})";

}  // namespace

TrainingJob::TrainingJob() { write_file_atomically(path("job.json"), kLenetJob); }

std::unique_ptr<Fleetrun> TrainingJob::start(const std::string& name,
                                             std::vector<std::string> options,
                                             const std::vector<std::string>& overrides,
                                             const std::string& file) {
  options.push_back("--log_dir=log." + name);
  options.push_back(file);
  for (const std::string& text : overrides) {
    options.push_back("--set");
    options.push_back(text);
  }
  return std::make_unique<Fleetrun>(folder_, name, options);
}

int TrainingJob::run_on_two_nodes(const std::string& name, int ranks,
                                  const std::vector<std::string>& overrides) {
  const ReservedPort rendezvous = ReservedPort::any("127.0.0.1");
  const int rdzv_port = rendezvous.port();
  const auto node = [&](int number) {
    const std::string n = std::to_string(number);
    return start(
        name + n,
        {"--ips=127.0.0.1,127.0.0.2", "--host=127.0.0." + std::to_string(number + 1),
         "--nproc_per_node=" + std::to_string(ranks), "--rdzv_port=" + std::to_string(rdzv_port),
         "--start_port=" + std::to_string(20000 + rdzv_port % 10000)},
        overrides);
  };
  const auto first = node(0), second = node(1);
  const int code = first->wait();
  EXPECT_EQ(second->wait(), code) << second->output();
  if (code != 0) std::fputs(first->output().c_str(), stderr);
  return code;
}

int TrainingJob::run_worker(const std::vector<std::string>& arguments, std::string* error) {
  std::string command = "cd '" + folder_.path() + "' && " + folder_.marked_environment() + " '" +
                        program_folder() + "/fleet-worker'";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  const int status = std::system((command + " >worker.out 2>worker.err").c_str());
  *error = folder_.read("worker.err");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t TrainingJob::worker(const std::string& rank) const {
  const std::string own = "PADDLE_TRAINER_ID=" + rank;
  for (const pid_t pid : folder_.processes("fleet-worker")) {
    const std::string environment = read_file("/proc/" + std::to_string(pid) + "/environ");
    if (environment.find(own + '\0') != std::string::npos) return pid;
  }
  ADD_FAILURE() << "no rank " << rank;
  return -1;
}

TensorFile TrainingJob::weights(const std::string& output) const {
  const auto folder = latest_checkpoint(path(output) + "/checkpoints");
  if (!folder) {
    ADD_FAILURE() << "no checkpoint in " << output;
    return {};
  }
  return read_safetensors(*folder + "/model.safetensors");
}

double distance(const TensorFile& a, const TensorFile& b) {
  double difference = 0, scale = 0;
  EXPECT_FALSE(a.tensors.empty());
  EXPECT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    const auto other = b.tensors.find(name);
    if (other == b.tensors.end() || other->second.shape != tensor.shape) {
      ADD_FAILURE() << name << " is not in both";
      continue;
    }
    std::vector<float> x(tensor.shape.elements()), y(x.size());
    std::memcpy(x.data(), tensor.data.data(), tensor.data.size());
    std::memcpy(y.data(), other->second.data.data(), tensor.data.size());
    for (size_t i = 0; i < x.size(); ++i) {
      difference = std::max(difference, std::abs(double(x[i]) - y[i]));
      scale = std::max(scale, std::abs(double(x[i])));
    }
  }
  return difference / scale;
}

}  // namespace fleet
