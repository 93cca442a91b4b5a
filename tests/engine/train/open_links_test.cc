// Each connection of a pipeline carries one message before the first step.
#include "train/open_links.h"

#include <gmock/gmock.h>

#include "exec/communicator_set.h"
#include "tensor/host.h"
#include "tests/engine/train/rank_threads.h"
#include "train/job.h"
#include "train/session.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;

TEST(OpenLinks, EachConnection_CarriesOneElement) {
  constexpr int kRanks = 4;
  std::vector<std::vector<int64_t>> sent(kRanks), received(kRanks);  // by rank and connection
  run_ranks_well(kRanks, [&](RankThread& rank) {
    const Job job = make_job(ConfigTree::from_json(
        R"({"model": {"name": "mlp", "num_classes": 4, "hidden": [64, 64, 64, 64, 64, 64, 64, 64]},
            "data": {"source": "synthetic", "batch_size": 4,
                     "image": {"channels": 1, "height": 8, "width": 8}},
            "optimizer": {"name": "sgd"},
            "strategy": {"pipeline": true, "pipeline_configs": {"accumulate_steps": 2}}})",
        "test"));
    const BuiltProgram built = build_program(
        job, {.columns = image_columns({1, 8, 8}), .rank = rank.rank, .world = kRanks});
    const CommunicatorSet set(built.program.groups(), rank.communicator);
    HostDevice device;
    const auto stream = device.make_stream("");
    open_links(built.program, set.all(), device, *stream);
    for (const Communicator* one : set.all()) {
      if (!one || one->size() != 2) continue;
      sent[rank.rank].push_back(one->traffic()->sent);
      received[rank.rank].push_back(one->traffic()->received);
    }
  });
  // With the previous stage, then with the next: activations, gradients.
  EXPECT_THAT(sent, ElementsAre(ElementsAre(4, 0), ElementsAre(0, 4, 4, 0), ElementsAre(0, 4, 4, 0),
                                ElementsAre(0, 4)));
  EXPECT_THAT(received, ElementsAre(ElementsAre(0, 4), ElementsAre(4, 0, 0, 4),
                                    ElementsAre(4, 0, 0, 4), ElementsAre(4, 0)));
}

}  // namespace
}  // namespace fleet
