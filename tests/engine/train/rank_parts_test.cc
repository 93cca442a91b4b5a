// Checkpoints of Programs with states of each rank: parts, and what ranks agree on.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tensor/host.h"
#include "tests/engine/train/rank_threads.h"
#include "train/checkpoint.h"
#include "train/initial_weights.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A parameter with its momentum; with `parts` also its residual, which is of each rank, and so is
// the loss scale with `scale`.
Program small_program(bool parts, bool scale = false, int64_t size = 3) {
  Program program;
  program.add_section("forward", {});
  program.parameter("fc.weight", {size}, {Init::kUniform, -1, 1});
  program.state("fc.weight.momentum", {size}, {Init::kUniform, 2, 3});
  if (parts) {
    const VarId residual = program.state("fc.weight.residual", {size}, {Init::kUniform, 5, 6});
    program.var(residual).per_rank = true;
  }
  if (scale) {
    const VarId loss_scaling = program.state("optimizer.loss_scaling", {1}, {Init::kConstant, 8});
    program.var(loss_scaling).per_rank = true;
  }
  return program;
}

constexpr char kKilled[] = "killed";  // what a rank throws that goes without a word

// One rank of a job, in a thread of its own.
struct Rank {
  JobRank own;
  RankCoordinator& control;
  Executor& executor;
};

class RankParts : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "/rank_parts_test_" + std::to_string(::getpid());
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  // Runs `body` on `world` ranks that begin with other values each; their failures come back, by
  // rank ("": none).
  std::vector<std::string> run(int world, bool parts, const std::function<void(Rank&)>& body) {
    std::vector<std::string> failures(world);
    codes_.assign(world, std::nullopt);
    run_ranks_well(world, [&](RankThread& thread) {
      const int rank = thread.rank;
      HostDevice device;
      RankCoordinator control(thread.communicator);
      Executor executor(plan_program(small_program(parts, scaled_), {}), device, nullptr);
      executor.initialize(10 + rank);
      Rank self{{rank, world}, control, executor};
      try {
        body(self);
      } catch (const Error& error) {
        codes_[rank] = error.code();
        failures[rank] = error.what();
      }
      if (failures[rank] != kKilled) control.barrier();  // nobody leaves while another waits
    });
    return failures;
  }
  std::vector<std::string> save(int world, bool parts = true) {
    return run(world, parts, [&](Rank& rank) {
      save_on_all_ranks(root_, position_, rank.executor, 0, rank.own, rank.control);
    });
  }
  std::vector<std::string> load(int world, bool parts = true) {
    return run(world, parts, [&](Rank& rank) {
      const auto before = values(rank.executor);
      std::string note;
      try {
        load_checkpoint(folder(), "mlp", rank.executor, {.own = rank.own, .note = &note});
        if (rank.own.rank == 0) note_ = note;
      } catch (const Error&) {
        EXPECT_EQ(values(rank.executor), before) << "a refused checkpoint changed something";
        throw;
      }
    });
  }
  static std::map<std::string, std::vector<float>> values(Executor& executor) {
    std::map<std::string, std::vector<float>> all;
    const Program& program = executor.program();
    for (VarId id = 0; id < program.var_count(); ++id) {
      all[program.var(id).name] = executor.values<float>(id);
    }
    return all;
  }
  std::string folder() const { return root_ + "/step_00000007"; }
  std::string part(int rank) const {
    return folder() + "/rank_0000" + std::to_string(rank) + ".safetensors";
  }
  // The failed rank throws this error; the other ranks name it.
  void expect_failure(const std::vector<std::string>& failures, size_t failed,
                      const std::string& message, ErrorCode code) {
    for (size_t rank = 0; rank < failures.size(); ++rank) {
      EXPECT_THAT(
          failures[rank],
          HasSubstr(rank == failed ? message : "rank " + std::to_string(failed) + ": could"));
      EXPECT_EQ(codes_[rank], rank == failed ? code : ErrorCode::kPeerLost);
    }
  }
  std::string root_;
  bool scaled_ = false;  // the loss, by each rank for itself
  std::string note_;     // of rank 0's last load
  std::vector<std::optional<ErrorCode>> codes_;
  const TrainingPosition position_{
      .step = 7, .epoch = 1, .batch = 3, .seed = 42, .global_batch = 8, .model = "mlp"};
};

TEST_F(RankParts, SaveWithoutParts_FailsOnAllRanks) {
  std::ofstream(root_) << "in the way";
  expect_failure(save(2, false), 0, root_, ErrorCode::kIo);
}

TEST_F(RankParts, SaveThenLoad_GivesEachRankItsOwn) {
  std::vector<std::map<std::string, std::vector<float>>> saved(3), loaded(3);
  const auto failures = run(3, true, [&](Rank& rank) {
    saved[rank.own.rank] = values(rank.executor);
    const std::string at =
        save_on_all_ranks(root_, position_, rank.executor, 0, rank.own, rank.control);
    EXPECT_EQ(at, rank.own.rank == 0 ? folder() : "");
    EXPECT_TRUE(fs::exists(folder() + "/state.json")) << "it is there when the call returns";
  });
  EXPECT_THAT(failures, Each(""));
  run(3, true, [&](Rank& rank) {
    rank.executor.initialize(99);
    const TrainingPosition back =
        load_checkpoint(folder(), "mlp", rank.executor, {.own = rank.own});
    EXPECT_EQ(back.step, 7);
    loaded[rank.own.rank] = values(rank.executor);
  });
  ASSERT_NE(saved[1].at("fc.weight.residual"), saved[2].at("fc.weight.residual"));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(loaded[rank].at("fc.weight.residual"), saved[rank].at("fc.weight.residual"));
    EXPECT_EQ(loaded[rank].at("fc.weight"), saved[0].at("fc.weight"));
    EXPECT_EQ(loaded[rank].at("fc.weight.momentum"), saved[0].at("fc.weight.momentum"));
  }
}

TEST_F(RankParts, Files_HoldEachVariableOnce) {
  save(2);
  EXPECT_EQ(read_safetensors(folder() + "/model.safetensors").tensors.size(), 1u);
  EXPECT_EQ(read_safetensors(folder() + "/optimizer.safetensors").tensors.size(), 1u);
  EXPECT_TRUE(read_safetensors(part(1)).tensors.contains("fc.weight.residual"));
  EXPECT_FALSE(fs::exists(part(2)));
  EXPECT_EQ(nlohmann::json::parse(read_file(folder() + "/state.json"))["ranks"], 2);
}

TEST_F(RankParts, ProgramWithoutThem_HasNoParts) {
  EXPECT_THAT(save(2, false), Each(""));
  EXPECT_FALSE(fs::exists(part(0)));
  EXPECT_FALSE(nlohmann::json::parse(read_file(folder() + "/state.json")).contains("ranks"));
  EXPECT_THAT(load(4, false), Each(""));
}

TEST_F(RankParts, AnotherNumberOfRanks_IsRefusedByAllByName) {
  save(2);
  for (const int world : {1, 4}) {
    EXPECT_THAT(load(world),
                Each(HasSubstr("states of each of 2 ranks ('fc.weight.residual'), this job "
                               "has " +
                               std::to_string(world))));
    EXPECT_THAT(codes_, Each(ErrorCode::kUsage));
  }
}

TEST_F(RankParts, OnlyOneHasThem_IsRefused) {
  save(2);
  EXPECT_THAT(load(2, false), Each(HasSubstr("each of 2 ranks ('fc.weight.residual')")));
  EXPECT_THAT(codes_, Each(ErrorCode::kUsage));
  save(2, false);
  EXPECT_THAT(load(2), Each(::testing::AllOf(HasSubstr("no per-rank states"),
                                             HasSubstr("'fc.weight.residual' of each of 2"))));
  EXPECT_THAT(codes_, Each(ErrorCode::kUsage));
}

// localsgd with float16: each rank has its own loss scale, which is not learnt.
TEST_F(RankParts, LossScalingOfEachRank_MayBeMissingOnEitherSide) {
  for (const bool parts : {true, false}) {
    scaled_ = true;
    save(2, parts);
    EXPECT_THAT(load(2, parts), Each(""));
    EXPECT_EQ(note_, "");
    scaled_ = false;
    EXPECT_THAT(load(2, parts), Each(""));
    EXPECT_THAT(note_, HasSubstr("dropped: optimizer.loss_scaling"));
    save(2, parts);
    scaled_ = true;
    EXPECT_THAT(load(2, parts), Each(""));
    EXPECT_THAT(note_, HasSubstr("reset to initial values: optimizer.loss_scaling"));
  }
  save(2, false);
  EXPECT_THAT(load(4, false), Each("")) << "no other state of each rank";
  EXPECT_NE(note_, "");
}

TEST_F(RankParts, PartThatIsGoneCutOrOfAnother_IsRefusedByItsRank) {
  save(2);
  const std::string whole = read_file(part(1));
  fs::remove(part(1));
  EXPECT_THAT(load(2), ::testing::ElementsAre("", StartsWith(part(1) + ": ")));
  write_file_atomically(part(1), whole.substr(0, whole.size() - 4));
  EXPECT_THAT(load(2), ::testing::ElementsAre("", StartsWith(part(1) + ": ")));
  fs::copy_file(part(0), part(1), fs::copy_options::overwrite_existing);
  EXPECT_THAT(load(2), ::testing::ElementsAre("", HasSubstr("rank 1 of 2 at step 7")));
  EXPECT_EQ(codes_[1], ErrorCode::kUsage);
}

// Nodes that share no folder: rank 1 has none of that name.
TEST_F(RankParts, RankThatCannotWrite_FailsTheSaveOnAll) {
  const auto failures = run(3, true, [&](Rank& rank) {
    save_on_all_ranks(rank.own.rank == 1 ? root_ + "/other_disk" : root_, position_, rank.executor,
                      0, rank.own, rank.control);
  });
  expect_failure(failures, 1, "set train.output to a folder that all nodes share", ErrorCode::kIo);
  EXPECT_EQ(latest_checkpoint(root_), std::nullopt);
  EXPECT_FALSE(fs::exists(folder() + ".part"));
}

// Nodes that share no folder, where rank 1's has one of that name: rank 0 lacks its part.
TEST_F(RankParts, PartThatRank0DoesNotSee_FailsTheSaveOnAll) {
  const std::string other = root_ + "/other_disk";
  fs::create_directories(other + "/step_00000007.part");
  const auto failures = run(2, true, [&](Rank& rank) {
    save_on_all_ranks(rank.own.rank == 1 ? other : root_, position_, rank.executor, 0, rank.own,
                      rank.control);
  });
  expect_failure(failures, 0, "rank 1 wrote it, rank 0 does not see it", ErrorCode::kIo);
  EXPECT_EQ(latest_checkpoint(root_), std::nullopt);
}

// Each moment in which a job may be killed: an earlier checkpoint stays the newest, and the next
// save is whole.
TEST_F(RankParts, CutOffAnywhere_LeavesTheOneBefore) {
  save(2);
  const std::string before = folder();
  TrainingPosition later = position_;
  later.step = 9;
  HostDevice device;
  Executor executor(plan_program(small_program(true), {}), device, nullptr);
  executor.initialize(1);
  const std::string aside = begin_checkpoint(root_, 9);
  EXPECT_EQ(latest_checkpoint(root_), before);
  std::vector<size_t> bytes = {
      save_rank_part(root_, 9, values_of(executor, {0, 2}, false), {0, 2})};
  EXPECT_EQ(latest_checkpoint(root_), before);
  bytes.push_back(save_rank_part(root_, 9, values_of(executor, {1, 2}, false), {1, 2}));
  EXPECT_EQ(latest_checkpoint(root_), before);
  // Rank 1's part was cut behind its back.
  const std::string path = aside + "/rank_00001.safetensors";
  write_file_atomically(path, read_file(path).substr(0, 20));
  EXPECT_THROW(finish_checkpoint(root_, later, values_of(executor, {}, false), {}, bytes), Error);
  EXPECT_EQ(latest_checkpoint(root_), before);
  // The next save of that step starts from nothing: old files do not count as parts.
  begin_checkpoint(root_, 9);
  bytes[0] = save_rank_part(root_, 9, values_of(executor, {0, 2}, false), {0, 2});
  EXPECT_THROW(finish_checkpoint(root_, later, values_of(executor, {}, false), {}, bytes), Error);
  bytes[1] = save_rank_part(root_, 9, values_of(executor, {1, 2}, false), {1, 2});
  EXPECT_EQ(finish_checkpoint(root_, later, values_of(executor, {}, false), {}, bytes),
            root_ + "/step_00000009");
  EXPECT_EQ(latest_checkpoint(root_), root_ + "/step_00000009");
  EXPECT_FALSE(fs::exists(aside));
}

// A rank is gone before it has written its part.
TEST_F(RankParts, RankThatDiesWhileSaving_LeavesNoCheckpoint) {
  run(2, true, [&](Rank& rank) {
    if (rank.own.rank == 0) {
      try {
        save_on_all_ranks(root_, position_, rank.executor, 0, rank.own, rank.control);
        ADD_FAILURE() << "saved without rank 1";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
      }
    } else {
      rank.control.all_succeed("begin a checkpoint", [] { return 0.0; });
    }
    throw Error(ErrorCode::kInternal, kKilled);
  });
  EXPECT_EQ(latest_checkpoint(root_), std::nullopt);
  EXPECT_FALSE(fs::exists(folder() + ".part"));
}

TEST_F(RankParts, SharedFolder_IsLookedForBeforeTraining) {
  fs::create_directories(root_ + "/other_disk");
  EXPECT_THAT(
      run(2, true, [&](Rank& rank) { check_folder_is_shared(root_, rank.own, rank.control); }),
      Each(""));
  const auto failures = run(2, true, [&](Rank& rank) {
    check_folder_is_shared(rank.own.rank == 1 ? root_ + "/other_disk" : root_, rank.own,
                           rank.control);
  });
  expect_failure(failures, 1, "rank 1 does not see what rank 0 wrote", ErrorCode::kUsage);
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    EXPECT_TRUE(entry.is_directory()) << entry.path();
  }
}

TEST_F(RankParts, Weights_StartWithoutTheParts) {
  save(2);
  HostDevice device;
  Executor executor(plan_program(small_program(true), {}), device, nullptr);
  executor.initialize(50);
  const auto before = values(executor);
  load_weights(folder() + "/model.safetensors", {}, executor);
  EXPECT_NE(values(executor).at("fc.weight"), before.at("fc.weight"));
  EXPECT_EQ(values(executor).at("fc.weight.residual"), before.at("fc.weight.residual"));
}

TEST_F(RankParts, AllSucceed_ReturnsWhatEachGaveOrFailsOnAll) {
  EXPECT_THAT(run(3, false,
                  [](Rank& rank) {
                    const auto all =
                        rank.control.all_succeed("count", [&] { return 1.0 + rank.own.rank; });
                    EXPECT_EQ(all, (std::vector<double>{1, 2, 3}));
                  }),
              Each(""));
  const auto failures = run(3, false, [](Rank& rank) {
    rank.control.all_succeed("count", [&]() -> double {
      if (rank.own.rank == 2) throw Error(ErrorCode::kUsage, "cannot count");
      return 0;
    });
  });
  expect_failure(failures, 2, "cannot count", ErrorCode::kUsage);
  EXPECT_EQ(RankCoordinator(nullptr).all_succeed("count", [] { return 4.0; }),
            std::vector<double>{4.0});
}

}  // namespace
}  // namespace fleet
