// Networks for predictions and teachers are those of the job's keys.
#include "models/evaluated_network.h"

#include <gtest/gtest.h>

#include "tensor/host.h"
#include "train/class_activation.h"
#include "train/job_task.h"
#include "train/predicted_values.h"

namespace fleet {
namespace {

Job job_of_norms(const std::string& predict) {
  return make_job(ConfigTree::from_json(
      R"({"model": {"name": "resnet18", "num_classes": 4, "width": 8, "batch_norm_epsilon": 0.25,
                    "winograd": false},
          "data": {"source": "synthetic", "image": {"channels": 3, "height": 64, "width": 64}},
          "predict": {)" +
          predict + "}}",
      "test"));
}

std::set<double> norm_epsilons(const Program& program) {
  std::set<double> all;
  for (const Op& op : program.ops()) {
    if (op.type().find("batch_norm") != std::string::npos) {
      all.insert(op.attributes.number("epsilon"));
    }
  }
  return all;
}

TEST(EvaluatedNetwork, ModelKeys_AreApplied) {
  const Job job = job_of_norms("");
  const EvaluatedNetwork network =
      evaluated_network("resnet18", job.model, {2, 3, 64, 64}, {"logits"});
  EXPECT_EQ(norm_epsilons(network.program), (std::set<double>{0.25}));
  for (const Op& op : network.program.ops()) {
    if (op.type() != "conv2d") continue;
    EXPECT_FALSE(op.attributes.boolean("winograd"));
  }
}

TEST(EvaluatedNetwork, MapsAndEmbeddings_HaveTheNormsOfTheModel) {
  HostDevice device;
  ClassActivation maps(job_of_norms(""), device, 1, {3, 64, 64});
  EXPECT_EQ(norm_epsilons(maps.executor().program()), (std::set<double>{0.25}));
  const Job job = job_of_norms(R"("embedding": "features")");
  const auto values =
      make_predicted_values(job, device, prediction_layout(job), 1, expected_columns(job));
  EXPECT_EQ(norm_epsilons(values->executor().program()), (std::set<double>{0.25}));
}

}  // namespace
}  // namespace fleet
