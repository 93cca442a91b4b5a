#include "train/job_data.h"

#include "base/error.h"
#include "train/device_settings.h"
#include "train/same_start.h"

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

ModelCard JobData::card(const Job& job) const {
  const data::ImageShape& image = train_->image();
  return {data::class_names(job.data, train_->source(), job.model.integer("num_classes")),
          {image.channels, image.height, image.width}};
}

const data::Fingerprint& JobData::fingerprint() {
  if (!fingerprint_) fingerprint_ = data::fingerprint(train_->source());
  return *fingerprint_;
}

void JobData::compare(const Job& job, JobRank rank, Store& store) {
  std::optional<data::Fingerprint> test;
  if (test_) test = data::fingerprint(test_->source());
  StartComparison(claims_of_data(job, fingerprint(), test ? &*test : nullptr), "data", rank, store,
                  timeout_of(job))
      .wait();
}

}  // namespace fleet
