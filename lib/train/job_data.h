// The data that a job names, opened for one rank.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/fingerprint.h"
#include "data/pipeline.h"
#include "store/store.h"
#include "tensor/device.h"
#include "train/model_card.h"
#include "train/rank_state.h"
#include "train/session.h"

namespace fleet {

class JobData {
 public:
  // part: which samples are this rank's. The device must outlive it. kUsage with the reason where
  // settings and data do not go together.
  JobData(const Job& job, Device& device, const DataPart& part);
  JobData(const JobData&) = delete;

  data::InputPipeline& train() { return *train_; }
  data::InputPipeline* test() { return test_.get(); }  // null where the job names none
  // What the job's data are: names of the classes, size of the images.
  ModelCard card(const Job& job) const;
  // Which part of the training data is evaluated on (data.validation_split), as one line that is
  // the same where the same samples are; "": none is.
  std::string validation(const Job& job);
  // Of the training data; looks at them the first time.
  const data::Fingerprint& fingerprint();
  // Compares the data and the weights to start from with the other ranks'. Collective, once for a
  // Store. Errors of StartComparison.
  void compare(const Job& job, JobRank rank, Store& store);

 private:
  std::vector<Buffer> image_memory_;  // of the batches, where copies are fast from it
  std::unique_ptr<data::InputPipeline> train_, test_;
  const data::Fingerprint& test_fingerprint();

  std::optional<data::Fingerprint> fingerprint_, test_fingerprint_;
};

}  // namespace fleet
