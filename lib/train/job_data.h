// The data that a job names, opened for one rank.
#pragma once

#include <memory>
#include <vector>

#include "data/pipeline.h"
#include "tensor/device.h"
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

 private:
  std::vector<Buffer> image_memory_;  // of the batches, where copies are fast from it
  std::unique_ptr<data::InputPipeline> train_, test_;
};

}  // namespace fleet
