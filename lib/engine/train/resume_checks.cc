#include "train/resume_checks.h"

#include "base/error.h"
#include "train/job_data.h"

namespace fleet {

void check_goes_on(const TrainingPosition& saved, const TrainingPosition& own,
                   std::optional<int64_t> batches, const std::string& folder) {
  if (saved.global_batch != own.global_batch) {
    throw Error(ErrorCode::kUsage,
                "was trained with a global batch of " + std::to_string(saved.global_batch) +
                    ", this job's is " + std::to_string(own.global_batch),
                folder,
                "set data.global_batch_size=" + std::to_string(saved.global_batch) +
                    ", which fits any number of ranks that divides it");
  }
  if (saved.seed != own.seed) {
    throw Error(ErrorCode::kUsage, "was trained with train.seed " + std::to_string(saved.seed),
                folder,
                "set the same train.seed, or checkpoint.weights to start afresh from its weights");
  }
  if (batches && saved.batch > *batches) {
    throw Error(ErrorCode::kUsage,
                "stands at batch " + std::to_string(saved.batch) + " of an epoch, the data has " +
                    std::to_string(*batches),
                folder, "resume with the data it was trained with");
  }
}

std::string validation_difference(const TrainingPosition& saved, const TrainingPosition& own) {
  const auto text = [](const std::string& validation) {
    return validation.empty() ? std::string("none") : "'" + validation + "'";
  };
  return "was trained with the validation split " + text(saved.validation) + ", this job's is " +
         text(own.validation);
}

void check_validation(const TrainingPosition& saved, const TrainingPosition& own,
                      const std::string& folder) {
  if (JobData::same_validation(saved.validation, own.validation)) return;
  throw Error(ErrorCode::kUsage, validation_difference(saved, own), folder,
              "set the same data.validation_split and validation_seed, with the same data, or "
              "checkpoint.weights to start afresh from its weights");
}

}  // namespace fleet
