// Small trainings on a device, for tests that compare devices.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace fleet {

// A folder for the job's output, gone after the test.
class DeviceTrainingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    output_ = ::testing::TempDir() + "/device_training_" + std::to_string(::getpid());
    std::filesystem::remove_all(output_);
  }
  void TearDown() override { std::filesystem::remove_all(output_); }

  // A job in JSON, with these overrides.
  Job make(const std::string& json, std::vector<std::string> overrides) const {
    ConfigTree tree = ConfigTree::from_json(json, "test");
    overrides.push_back("train.output=" + output_);
    apply_overrides(tree, overrides);
    return make_job(tree);
  }

  struct Outcome {
    std::vector<std::vector<float>> parameters;
    TrainResult result;
  };
  static Outcome train(const Job& job, Device& device) {
    Trainer trainer(job, device, {});
    Outcome outcome;
    outcome.result = trainer.run();
    Executor& executor = trainer.session().executor();
    for (VarId id : executor.program().parameters()) {
      outcome.parameters.push_back(executor.values<float>(id));
    }
    return outcome;
  }

  std::string output_;
};

}  // namespace fleet
