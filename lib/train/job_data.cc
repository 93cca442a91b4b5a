#include "train/job_data.h"

#include "base/error.h"
#include "train/device_settings.h"

namespace fleet {

JobData::JobData(const Job& job, Device& device, const DataPart& part) {
  data::PipelineContext context{.rank = part.part,
                                .ranks = part.parts,
                                .seed = static_cast<uint64_t>(job.train.integer("seed")),
                                .classes = job.model.integer("num_classes"),
                                .ignored_label = job.train.integer("ignore_index"),
                                .bytes = feeds_bytes(job, device.backend()),
                                .image_memory = {}};
  if (device.runs_beside_host()) {
    context.image_memory = [this, &device](size_t bytes) {
      image_memory_.push_back(device.allocate_host(bytes));
      return image_memory_.back().data();
    };
  }
  train_ = data::make_pipeline(job.data, true, context);
  test_ = data::make_pipeline(job.data, false, context);
  if (test_ && test_->image() != train_->image()) {
    throw Error(
        ErrorCode::kUsage,
        "test images are " + test_->image().text() + ", training images " + train_->image().text(),
        "data", "give both the same size");
  }
}

}  // namespace fleet
