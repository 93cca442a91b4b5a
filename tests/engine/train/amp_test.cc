// Training in mixed precision on the CPU: against float32, with a scaled loss, saved and resumed.
#include <gmock/gmock.h>

#include <filesystem>

#include "exec/backend.h"
#include "tests/engine/train/save_checkpoint.h"
#include "tests/engine/train/small_net.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

const std::string kAmp = "amp: true";
// With a scaled loss, which bfloat16 does not need.
std::string scaled_amp(const std::string& configs) {
  return kAmp + " amp_configs { " + configs + " }";
}

// Parameters and optimizer states without the scale itself.
Values trained(SmallNet& net) {
  Values all = net.saved();
  all.erase("optimizer.loss_scaling");
  return all;
}

class AmpTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (low_precision_types("cpu", &why).empty()) GTEST_SKIP() << why;
  }
};

TEST_F(AmpTraining, ResnetsFirstSteps_StayCloseToFloat32) {
  SmallNet wide("resnet20", ""), low("resnet20", kAmp);
  for (int step = 0; step < 6; ++step) {
    const float want = wide.step(step), got = low.step(step);
    EXPECT_NEAR(got, want, 0.03 * want) << step;
  }
}

// Convolutions read the parameters themselves, in their own layouts.
TEST_F(AmpTraining, ResnetsFirstStepsWithBFloat16Weights_StayCloseToFloat32) {
  SmallNet wide("resnet20", "");
  SmallNet low("resnet20", kAmp, SmallNet::kMomentum, "{}", DType::kBFloat16);
  SmallNet stored("resnet20", "", SmallNet::kMomentum, "{}", DType::kBFloat16);
  for (int step = 0; step < 3; ++step) {
    const float want = wide.step(step);
    EXPECT_NEAR(low.step(step), want, 0.05 * want) << step;
    EXPECT_NEAR(stored.step(step), want, 0.05 * want) << step;
  }
}

// The Plan, from which --explain takes its numbers. Momentum: 4 + 2 (copy) + 4 bytes become 2 + 2.
// Layouts that pad the copies on some processors make the difference larger.
TEST_F(AmpTraining, BFloat16Weights_TakeFewerBytes) {
  SmallNet wide("lenet", kAmp);
  SmallNet narrow("lenet", kAmp, SmallNet::kMomentum, "{}", DType::kBFloat16);
  const PlannedMemory whole = wide.executor().plan().memory();
  const PlannedMemory part = narrow.executor().plan().memory();
  int64_t elements = 0;
  const Program& program = narrow.executor().program();
  for (const VarId id : program.parameters()) elements += program.var(id).shape.elements();
  EXPECT_GE(part.parameters, 2 * elements);
  EXPECT_GE(part.states, 2 * elements);
  EXPECT_LE(double(part.parameters) / whole.parameters, 2.0 / 4 + 0.02);
  EXPECT_LE(double(part.states) / whole.states, 2.0 / 6 + 0.02);
}

TEST_F(AmpTraining, UpdatesInOneOperationOrMany_GiveTheSameBits) {
  SmallNet one("resnet20", kAmp + " build_strategy { fuse_all_optimizer_ops: false }");
  SmallNet all("resnet20", kAmp);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(one.step(step), all.step(step));
  EXPECT_EQ(differences(one.saved(), all.saved()), "");
}

// A scale that is a power of two changes exponents only.
TEST_F(AmpTraining, ScaledLoss_GivesTheBitsOfTheUnscaled) {
  std::vector<std::string> optimizers = {
      SmallNet::kMomentum, R"({"name": "rmsprop", "centered": true, "momentum": 0.9})",
      R"({"name": "momentum", "clip": "global_norm", "clip_norm": 0.5})"};
  for (const std::string& name : optimizer_registry().names()) {
    optimizers.push_back(R"({"name": ")" + name + "\"}");
  }
  for (const std::string& optimizer : optimizers) {
    SmallNet plain("lenet", kAmp, optimizer);
    SmallNet scaled("lenet", scaled_amp("init_loss_scaling: 1024 use_dynamic_loss_scaling: false"),
                    optimizer);
    for (int step = 0; step < 4; ++step) EXPECT_EQ(plain.step(step), scaled.step(step));
    EXPECT_EQ(differences(trained(plain), trained(scaled)), "") << optimizer;
  }
}

// Overflows in steps 2 and 3: nothing is updated, the scale falls once, then training goes on as if
// they had not been.
TEST_F(AmpTraining, Overflow_IsSkippedAndLowersTheScale) {
  for (const char* optimizer : {SmallNet::kMomentum, R"({"name": "adam"})"}) {
    SmallNet plain("lenet", kAmp, optimizer);
    SmallNet scaled("lenet",
                    scaled_amp("init_loss_scaling: 4096 incr_every_n_steps: 3 decr_ratio: 0.25"),
                    optimizer);
    for (int step = 0; step < 2; ++step) {
      plain.step(step);
      scaled.step(step);
    }
    EXPECT_EQ(scaled.counter("good_steps"), 2);
    const auto before = trained(scaled);
    scaled.step(2, /*spoil=*/true);
    EXPECT_EQ(scaled.scale(), 4096);
    EXPECT_EQ(scaled.counter("good_steps"), 0);
    EXPECT_EQ(scaled.counter("bad_steps"), 1);
    scaled.step(3, /*spoil=*/true);
    EXPECT_EQ(scaled.scale(), 1024);
    EXPECT_EQ(scaled.counter("bad_steps"), 0);
    EXPECT_EQ(differences(before, trained(scaled)), "") << optimizer;
    for (int step = 4; step < 7; ++step) EXPECT_EQ(plain.step(step), scaled.step(step));
    EXPECT_EQ(differences(trained(plain), trained(scaled)), "") << optimizer;
    EXPECT_EQ(scaled.scale(), 2048);  // three good steps
  }
}

// train.sam: the first pass overflows in steps 1 and 2. Weights and their copies are those of
// before, the scale falls once, and training goes on.
TEST_F(AmpTraining, OverflowOfSamsFirstPass_IsSkippedAndLowersTheScale) {
  const std::string strategy = scaled_amp("init_loss_scaling: 4096 decr_ratio: 0.25");
  const auto net = [&] {
    return SmallNet("lenet", strategy, SmallNet::kMomentum, "{}", DType::kFloat32, 0.05);
  };
  SmallNet plain = net(), spoilt = net();
  EXPECT_EQ(plain.step(0), spoilt.step(0));
  const Values before = trained(spoilt);
  spoilt.step(1, /*spoil=*/true);
  EXPECT_EQ(spoilt.counter("bad_steps"), 1);
  spoilt.step(2, /*spoil=*/true);
  EXPECT_EQ(spoilt.scale(), 1024);
  EXPECT_EQ(differences(before, trained(spoilt)), "");
  for (int step = 3; step < 6; ++step) EXPECT_EQ(plain.step(step), spoilt.step(step));
  EXPECT_EQ(differences(trained(plain), trained(spoilt)), "");
}

// The loss of the first pass is finite; that at w + e overflows in each step.
TEST_F(AmpTraining, OverflowOfSamsSecondPass_IsSkippedAndLowersTheScale) {
  const std::string strategy = scaled_amp("init_loss_scaling: 4096 decr_ratio: 0.25");
  SmallNet net("lenet", strategy, SmallNet::kMomentum, "{}", DType::kFloat32, 1e30);
  const Values before = trained(net);
  const float loss = net.step(0);
  EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(net.counter("bad_steps"), 1);
  EXPECT_EQ(net.step(0), loss);
  EXPECT_EQ(net.scale(), 1024);
  EXPECT_EQ(differences(before, trained(net)), "");
}

TEST_F(AmpTraining, Checkpoint_BringsBackScaleAndCounters) {
  const std::string root = ::testing::TempDir() + "/amp_test_" + std::to_string(::getpid());
  const std::string strategy = scaled_amp("init_loss_scaling: 4096 incr_every_n_steps: 3");
  SmallNet whole("lenet", strategy), resumed("lenet", strategy);
  for (int step = 0; step < 4; ++step) whole.step(step);
  whole.step(4, /*spoil=*/true);
  const std::string folder =
      save_checkpoint(root, {.step = 5, .model = "lenet"}, whole.executor(), 1);
  load_checkpoint(folder, "lenet", resumed.executor());
  std::filesystem::remove_all(root);
  EXPECT_EQ(resumed.scale(), 8192);
  EXPECT_EQ(resumed.counter("bad_steps"), 1);
  for (int step = 5; step < 8; ++step) EXPECT_EQ(whole.step(step), resumed.step(step));
  EXPECT_EQ(differences(whole.saved(), resumed.saved()), "");
  EXPECT_EQ(whole.counter("good_steps"), resumed.counter("good_steps"));
}

// A run in float16 continues in float32, and vice versa.
TEST_F(AmpTraining, CheckpointOfOtherLossScaling_StartsTheMissingAndDropsTheSurplus) {
  const std::string root = ::testing::TempDir() + "/amp_test_" + std::to_string(::getpid());
  const auto saved = [&](SmallNet& net) {
    for (int step = 0; step < 3; ++step) net.step(step);
    return save_checkpoint(root, {.step = 3, .model = "lenet"}, net.executor(), 1);
  };
  const std::string dynamic = scaled_amp("init_loss_scaling: 4096 incr_every_n_steps: 2");
  std::string note;
  {
    SmallNet plain("lenet", kAmp), scaled("lenet", dynamic);
    load_checkpoint(saved(plain), "lenet", scaled.executor(), {.note = &note});
    EXPECT_EQ(differences(plain.saved(), scaled.saved()), "");
    EXPECT_EQ(scaled.scale(), 4096);
    EXPECT_EQ(scaled.counter("good_steps"), 0);
    EXPECT_THAT(note,
                HasSubstr("optimizer.loss_scaling, optimizer.good_steps, optimizer.bad_steps"));
    for (int step = 3; step < 6; ++step) EXPECT_EQ(plain.step(step), scaled.step(step));
  }
  {
    SmallNet scaled("lenet", dynamic), plain("lenet", kAmp);
    load_checkpoint(saved(scaled), "lenet", plain.executor(), {.note = &note});
    EXPECT_EQ(differences(plain.saved(), scaled.saved()), "");
    EXPECT_NE(note, "");
    for (int step = 3; step < 6; ++step) EXPECT_EQ(plain.step(step), scaled.step(step));
    SmallNet again("lenet", kAmp);
    load_checkpoint(saved(plain), "lenet", again.executor(), {.note = &note});
    EXPECT_EQ(note, "");
  }
  std::filesystem::remove_all(root);
}

TEST_F(AmpTraining, NanHuntUnderAScaledLoss_AdvisesASmallerScale) {
  SmallNet scaled("lenet", scaled_amp("init_loss_scaling: 32768"));
  scaled.executor().set_checking(true);
  try {
    scaled.step(0, /*spoil=*/true);
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_THAT(error.next(), HasSubstr("init_loss_scaling"));
  }
}

// Weights that the host writes reach the copies: also those of the evaluation.
TEST_F(AmpTraining, WrittenWeights_AreUsedByTheNextStep) {
  SmallNet one("lenet", kAmp), other("lenet", kAmp);
  one.step(0);
  other.step(5);
  for (VarId id = 0; id < one.executor().program().var_count(); ++id) {
    if (!is_saved(one.executor().program().var(id))) continue;
    other.executor().write(id, one.executor().values<float>(id));
  }
  EXPECT_EQ(one.step(1), other.step(1));
}

}  // namespace
}  // namespace fleet
