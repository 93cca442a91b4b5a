// A small job whose ranks are threads: the fixture of the tests of Trainer.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "tensor/float16.h"
#include "tensor/host.h"
#include "tests/engine/train/rank_threads.h"
#include "tests/errors.h"
#include "train/trainer.h"

namespace fleet {

// Runs a job with `world` ranks as threads; each rank's parameters and statistics come back.
class TrainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    output_ = ::testing::TempDir() + "/train_test_" + std::to_string(::getpid());
    std::filesystem::remove_all(output_);
  }
  void TearDown() override { std::filesystem::remove_all(output_); }

  Job job(const std::vector<std::string>& overrides,
          const std::string& model =
              R"({"name": "mlp", "num_classes": 4, "hidden": [32], "dropout": 0.2})",
          const std::string& optimizer =
              R"({"name": "momentum", "momentum": 0.9, "weight_decay": 1e-4})") const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "model": )" + model + R"(,
      "data": {"source": "synthetic", "batch_size": 16, "image": {"channels": 1, "height": 8, "width": 8},
               "train": {"samples": 64}, "test": {"samples": 37}},
      "optimizer": )" + optimizer + R"(,
      "learning_rate": {"name": "constant", "base": 0.05},
      "train": {"epochs": 2, "fetch_every": 3}
    })",
                                            "test");
    std::vector<std::string> all = overrides;
    all.push_back("train.output=" + output_);
    apply_overrides(tree, all);
    return make_job(tree);
  }

  using Weights = std::map<std::string, std::vector<float>>;
  struct Outcome {
    std::vector<Weights> weights;  // by rank
    std::vector<TrainResult> results;
  };

  static Weights weights_of(Executor& executor) {
    Weights weights;
    const Program& program = executor.program();
    for (VarId id = 0; id < program.var_count(); ++id) {
      const Var& var = program.var(id);
      const bool saved = var.kind == VarKind::kParameter || var.kind == VarKind::kState;
      if (var.remote) continue;
      if (saved && var.dtype == DType::kFloat32) weights[var.name] = executor.values<float>(id);
      if (saved && var.dtype == DType::kBFloat16) {
        const std::vector<BFloat16> narrow = executor.values<BFloat16>(id);
        weights[var.name] = {narrow.begin(), narrow.end()};
      }
    }
    return weights;
  }

  static TrainerOptions options_of(const RankThread& rank) {
    return {.rank = rank.rank,
            .world = rank.world,
            .communicator = rank.communicator,
            .store = rank.store};
  }

  // Makes a Trainer of the job on each rank, and calls body(trainer, rank) with it; how the ranks
  // ended.
  static std::vector<RankEnd> ends_of(
      const Job& job, int world,
      const std::function<void(Trainer&, int)>& body = [](Trainer& trainer, int) {
        trainer.run();
      }) {
    return run_ranks(world, [&](RankThread& rank) {
      HostDevice device;
      Trainer trainer(job, device, options_of(rank));
      body(trainer, rank.rank);
    });
  }

  // Signals come to the last rank.
  Outcome run(const Job& job, int world, const std::atomic<int>* stop = nullptr,
              const std::atomic<int>* saves = nullptr) {
    Outcome outcome{std::vector<Weights>(world), std::vector<TrainResult>(world)};
    run_ranks_well(world, [&](RankThread& rank) {
      HostDevice device;
      TrainerOptions options = options_of(rank);
      options.stop = rank.rank == world - 1 ? stop : nullptr;
      options.saves = rank.rank == world - 1 ? saves : nullptr;
      Trainer trainer(job, device, options);
      outcome.results[rank.rank] = trainer.run();
      outcome.weights[rank.rank] = weights_of(trainer.session().executor());
    });
    return outcome;
  }

  // The error of training it on one rank; "" if it succeeds.
  static std::string failure(const Job& job) {
    HostDevice device;
    return usage_failure([&] { Trainer(job, device, {}).run(); });
  }

  // The error that training it on one rank ends with.
  static Error refusal(const Job& job) {
    HostDevice device;
    return thrown_by([&] { Trainer(job, device, {}).run(); });
  }

  // Starts a job of two ranks, each from its own settings; returns their errors.
  static std::vector<std::string> start_two(const Job& first, const Job& second) {
    const auto ends = run_ranks(2, [&](RankThread& rank) {
      HostDevice device;
      Trainer trainer(rank.rank == 0 ? first : second, device, options_of(rank));
    });
    return {ends[0].message, ends[1].message};
  }

  // Those lines of a file of the run.
  std::vector<nlohmann::json> events(const std::string& kind,
                                     const std::string& name = "metrics.jsonl") const {
    std::vector<nlohmann::json> found;
    std::ifstream file(output_ + "/" + name);
    for (std::string line; std::getline(file, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event["event"] == kind) found.push_back(event);
    }
    return found;
  }

  // Without the states, which are named after their parameters.
  static Weights parameters(Weights weights) {
    std::erase_if(weights, [&](const auto& entry) { return entry.first.ends_with(".momentum"); });
    return weights;
  }

  // The values of all ranks together, without sums of gradients. Expects a value that several ranks
  // hold to be equal on each.
  static Weights together(const Outcome& outcome) {
    Weights all;
    for (const Weights& weights : outcome.weights) {
      for (const auto& [name, values] : weights) {
        if (name.ends_with("_gradient")) continue;
        EXPECT_EQ(all.try_emplace(name, values).first->second, values) << name;
      }
    }
    return all;
  }

  // The largest difference relative to the largest value.
  static double distance(const Weights& a, const Weights& b) {
    double difference = 0, scale = 0;
    for (const auto& [name, values] : a) {
      const std::vector<float>& others = b.at(name);
      for (size_t i = 0; i < values.size(); ++i) {
        difference = std::max(difference, std::abs(double(values[i]) - others[i]));
        scale = std::max(scale, std::abs(double(values[i])));
      }
    }
    return difference / scale;
  }

  std::string output_;
};

inline std::vector<std::string> with(std::vector<std::string> overrides,
                                     const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

}  // namespace fleet
