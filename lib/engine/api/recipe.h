// State that Model, Loader, minimize() and ProgramExecutor share. Not for programs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "api/value.h"
#include "api/world.h"
#include "base/config.h"
#include "train/job_data.h"

namespace fleet {

// Objects that a ProgramExecutor opened. Destroyed in reverse order.
struct ProgramResources {
  std::unique_ptr<Device> device;
  JobCommunicators communicators;
  std::unique_ptr<JobData> data;  // null if the program makes its own batches
  int64_t steps = 0;              // training steps so far
};

struct Recipe {
  ConfigTree tree;
  bool has_data = false;
  std::optional<Shape> own_image;  // the program makes its own batches
  int64_t batches_per_epoch = 0;   // 0: unknown
  bool minimized = false;
  std::shared_ptr<ProgramResources> opened;

  void set(const std::string& prefix, const Values& values, const std::string& origin) {
    for (const auto& [key, value] : values) tree.set(prefix + key, value.text(), origin);
  }
};

// The job's settings for this process, with Paddle's variables. `keys` (as in a job file) override
// the recipe's. kUsage if the model was not minimized.
ConfigTree tree_of(const Recipe& recipe, const Values& keys, const World& world);

}  // namespace fleet
