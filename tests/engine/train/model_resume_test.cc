// Networks with squeeze and excitation, dropout and stochastic depth train, evaluate, save and go
// on from what they saved.
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

using ModelResume = TrainerTest;

TEST_F(ModelResume, Interrupted_IsBitIdentical) {
  for (const char* model :
       {R"({"name": "mobilenet_v3_small", "num_classes": 4, "width": 0.25})",
        R"({"name": "efficientnet_b0", "num_classes": 4, "stochastic_depth": 0.5})"}) {
    SCOPED_TRACE(model);
    const std::vector<std::string> base = {
        "data.image={\"channels\": 3, \"height\": 32, \"width\": 32}", "data.batch_size=8",
        "data.train.samples=32", "train.epochs=1", "learning_rate.base=0.01"};
    std::filesystem::remove_all(output_);
    const Outcome whole = run(job(with(base, {"checkpoint.every_steps=2"}), model), 1);
    EXPECT_TRUE(std::isfinite(whole.results[0].evaluation.loss()));
    EXPECT_EQ(whole.results[0].evaluation.items(), 37);
    std::filesystem::remove_all(output_);
    run(job(with(base, {"train.max_steps=3"}), model), 1);
    const Outcome resumed = run(job(with(base, {"checkpoint.resume=auto"}), model), 1);
    EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0);
  }
}

}  // namespace
}  // namespace fleet
