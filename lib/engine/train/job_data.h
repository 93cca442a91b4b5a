// The data of a job, opened for one rank.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/fingerprint.h"
#include "data/pipeline.h"
#include "store/store.h"
#include "tensor/device.h"
#include "train/model_card.h"
#include "train/rank_coordinator.h"
#include "train/rank_state.h"
#include "train/session.h"

namespace fleet {

// The context of a job's data, for samples on a device of this backend.
data::PipelineContext data_context(const Job& job, const std::string& backend,
                                   const DataPart& part);

class JobData {
 public:
  // part: selects the samples of this rank. The device must outlive it. kUsage with the reason if
  // settings and data do not match.
  JobData(const Job& job, Device& device, const DataPart& part);
  JobData(const JobData&) = delete;

  data::InputPipeline& train() { return *train_; }
  data::InputPipeline* test() { return test_.get(); }  // null if the job has no test data
  // Describes the job's data: class names and image size.
  ModelCard card(const Job& job) const;
  // Identifies the part of the training data that is used for evaluation (data.validation_split) as
  // one line, which is equal if the samples are the same; "" without a split.
  std::string validation(const Job& job);
  // Identifies the training data and the settings that decide which of them an epoch has, in which
  // order.
  std::string order(const Job& job);
  // Fingerprint of the training data; reads them on the first call.
  const data::Fingerprint& fingerprint();
  // Compares the data and the initial weights with those of the other ranks. Collective, once per
  // Store. Errors of StartComparison.
  void compare(const Job& job, JobRank rank, Store& store);
  // data::ImageSizeError if images are of another size and nothing resizes them. Rank 0 reads the
  // sizes for all ranks, which end with the same error. Collective, once per Store; store: null in
  // a job of one rank.
  void check_sizes(const Job& job, JobRank rank, Store* store);

 private:
  std::vector<Buffer>
      image_memory_;  // for batches, if the device copies faster from its own host memory
  std::unique_ptr<data::InputPipeline> train_, test_;
  const data::Fingerprint& test_fingerprint();

  std::optional<data::Fingerprint> fingerprint_, test_fingerprint_;
};

// Opens the data of this rank, compares them with those of the other ranks, and checks the sizes of
// the images. store: null in a job of one rank.
std::unique_ptr<JobData> open_data(const Job& job, Device& device, JobRank rank, Store* store);

// The number of distinct damaged samples in the batches that all ranks have received. A sample
// counts once even if several ranks read it, so the number does not depend on the number of ranks.
// All ranks must call it.
int64_t count_damaged(const data::InputPipeline& pipeline, RankCoordinator& control);

}  // namespace fleet
