// Training whose gradients depend on the parameters, so that stale ones are noticed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ps/placement.h"
#include "tests/engine/ps/update_job.h"

namespace fleet::ps {

inline constexpr float kLocalRate = 0.1f;
inline constexpr PlacementOptions kOddBlocks{.min_elements = 5, .alignment = 1};

inline std::vector<float> value_of(Executor& executor, const std::string& name) {
  return executor.values<float>(executor.program().find(name));
}

// By parameter.
inline std::map<std::string, std::vector<float>> values_of(Executor& executor) {
  std::map<std::string, std::vector<float>> values;
  for (const auto& [name, shape] : parameters_of_mlp()) values[name] = value_of(executor, name);
  return values;
}

// Of the sum of (w - target)^2 / 2; the target differs by trainer.
inline std::vector<std::vector<float>> gradients_at(Executor& executor, int trainer) {
  std::vector<std::vector<float>> all;
  for (const auto& [name, shape] : parameters_of_mlp()) {
    std::vector<float>& gradient = all.emplace_back(value_of(executor, name));
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] -= 0.01f * static_cast<float>((i + trainer) % 17);
    }
  }
  return all;
}

// All states after local steps.
inline std::map<std::string, std::vector<std::byte>> trained_locally(const UpdateJob& job,
                                                                     int steps, float rate) {
  UpdateExecutor rank(program_of(job, /*served=*/false), 1);
  for (int step = 0; step < steps; ++step) {
    rank.feed(gradients_at(rank.executor(), 0), rate);
    rank.run(step);
  }
  return rank.saved();
}

}  // namespace fleet::ps
