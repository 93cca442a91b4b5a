#include "train/job_data.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/env.h"
#include "base/error.h"
#include "base/number_text.h"
#include "base/text.h"
#include "data/image_sizes.h"
#include "data/random.h"
#include "models/model.h"
#include "train/class_weights.h"
#include "train/device_settings.h"
#include "train/job_facts.h"
#include "train/job_task.h"
#include "train/language_weights.h"
#include "train/pretrained_job.h"
#include "train/start_comparison.h"

namespace fleet {

// Training and test images have a cache each; a third is left for the rest.
static size_t cache_bytes_of_rank() {
  const auto ranks = std::max<int64_t>(env_int_or("PADDLE_LOCAL_SIZE", 1), 1);
  return available_host_memory() / 3 / static_cast<size_t>(ranks);
}

data::PipelineContext data_context(const Job& job, const std::string& backend,
                                   const DataPart& part) {
  return {.rank = part.part,
          .ranks = part.parts,
          .seed = static_cast<uint64_t>(job.train.integer("seed")),
          .classes = classes_of(job),
          .ignored_label = ignored_label(job),
          .vocabulary = vocabulary_of(job),
          .bytes = feeds_bytes(job, backend)};
}

// The size of the images for which the model was made.
static data::ImageShape usual_image(const Job& job) {
  const Shape shape = model_registry().get(job.model_name).image;
  return {static_cast<int>(shape[0]), static_cast<int>(shape[1]), static_cast<int>(shape[2])};
}

// An evaluation alone needs the training data only to learn the size and the classes of images.
// Without images, the test data stand in for them: texts would have to be tokenized.
static bool trains_or_needs_sizes(const Job& job) {
  return !job.train.boolean("evaluate_only") || find_column(expected_columns(job), "image") ||
         !data::names_test_data(job.data);
}

JobData::JobData(const Job& job, Device& device, const DataPart& part) {
  data::PipelineContext context = data_context(job, device.backend(), part);
  context.cache_bytes = cache_bytes_of_rank();
  if (device.runs_beside_host()) {
    context.image_memory = [this, &device](size_t bytes) {
      image_memory_.push_back(device.allocate_host(bytes));
      return image_memory_.back().data();
    };
  }
  train_ = data::make_pipeline(job.data, trains_or_needs_sizes(job), context);
  test_ = data::make_pipeline(job.data, false, context);
  if (test_ && test_->image() != train_->image()) {
    if (test_->image().channels == train_->image().channels) {
      data::refuse_first_sizes(job.data, *train_, *test_, usual_image(job));
    }
    throw Error(
        ErrorCode::kUsage,
        "test images are " + test_->image().text() + ", training images " + train_->image().text(),
        "data", "use the same size for both");
  }
  if (!weighs_classes(job)) return;
  const std::vector<float> weights = class_weights(job, train_->source());
  train_->set_class_weights(weights);
  if (test_) test_->set_class_weights(weights);
}

ModelCard JobData::card(const Job& job) const {
  const data::ImageShape& image = train_->image();
  ModelCard card{data::class_names(job.data, train_->source(), classes_of(job)), {}};
  if (image.count() == 0) return card;
  card.image = {image.channels, image.height, image.width};
  card.pretrained = own_record(job, card.image);
  return card;
}

const data::Fingerprint& JobData::fingerprint() {
  if (!fingerprint_) fingerprint_ = data::fingerprint(train_->source());
  return *fingerprint_;
}

const data::Fingerprint& JobData::test_fingerprint() {
  if (!test_fingerprint_) test_fingerprint_ = data::fingerprint(test_->source());
  return *test_fingerprint_;
}

// Without the order of the samples. Rows of tokens have no names of files: their content counts.
static std::string identity(const data::Fingerprint& print, const std::vector<Column>& columns) {
  const uint64_t content = find_column(columns, "image") ? 0 : data::mix(print.images);
  return format_printf(
      "%lld samples, hash %016llx", static_cast<long long>(print.samples),
      static_cast<unsigned long long>(data::mix(print.labels) ^ print.files ^ content));
}

std::string JobData::validation(const Job& job) {
  const double part = job.data.number("validation_split");
  if (part == 0) return "";
  return format_printf("%g of each class by seed %lld: ", part,
                       static_cast<long long>(job.data.integer("validation_seed"))) +
         identity(test_fingerprint(), test_->columns());
}

// ", lengths 16 32", or "" without data.lengths, as in checkpoints from before there were any.
static std::string lengths_text(const std::vector<int64_t>& lengths) {
  std::string text = lengths.empty() ? "" : ", lengths";
  for (const int64_t length : lengths) text += " " + std::to_string(length);
  return text;
}

std::string JobData::order(const Job& job) {
  return identity(fingerprint(), train_->columns()) + ", shuffle " +
         (job.data.boolean("shuffle") ? "true" : "false") + ", sampling " +
         job.data.text("sampling") + ", repeats " + std::to_string(job.data.integer("repeats")) +
         ", tail " + job.data.text("tail") + lengths_text(train_->lengths());
}

void JobData::compare(const Job& job, JobRank rank, Store& store) {
  const data::Fingerprint* test = test_ ? &test_fingerprint() : nullptr;
  StartComparison(compared_items_of_data(job, fingerprint(), test), "data", rank, store,
                  timeout_of(job))
      .wait();
}

// The verdict of rank 0 for the Store: "", or the parts of the error, one per line.
static std::string verdict_of(const std::function<void()>& check) {
  try {
    check();
    return "";
  } catch (const data::ImageSizeError& error) {
    return error.failure() + "\n" + error.where() + "\n" + error.next();
  }
}

void JobData::check_sizes(const Job& job, JobRank rank, Store* store) {
  constexpr char kKey[] = "image_sizes";
  const data::InputPipeline* train = job.train.boolean("evaluate_only") ? nullptr : train_.get();
  if (!find_column(train_->columns(), "image")) return;
  const auto check = [&] { data::check_sizes(job.data, train, test_.get(), usual_image(job)); };
  if (!store || rank.world == 1) return check();
  if (rank.rank == 0) store->set(kKey, verdict_of(check));
  const std::string verdict = store->get(kKey, timeout_of(job));
  if (verdict.empty()) return;
  const std::vector<std::string_view> parts = lines_of(verdict);
  FLEET_CHECK(parts.size() == 3, "a verdict on image sizes: " + verdict);
  throw data::ImageSizeError(ErrorCode::kUsage, std::string(parts[0]), std::string(parts[1]),
                             std::string(parts[2]));
}

std::unique_ptr<JobData> open_data(const Job& job, Device& device, JobRank rank, Store* store) {
  check_task(job);
  const DataPart part = data_part(job, {.rank = rank.rank, .world = rank.world});
  auto data = std::make_unique<JobData>(job, device, part);
  if (store && rank.world > 1) data->compare(job, rank, *store);
  data->check_sizes(job, rank, store);
  return data;
}

int64_t count_damaged(const data::InputPipeline& pipeline, RankCoordinator& control) {
  const std::vector<int64_t> own = pipeline.damaged();
  const double count = static_cast<double>(own.size());
  size_t most = 0;
  for (const auto& rank : control.by_rank({&count, 1})) {
    most = std::max(most, static_cast<size_t>(rank[0]));
  }
  if (most == 0) return 0;
  std::vector<double> padded(own.begin(), own.end());
  padded.resize(most, -1);
  std::set<double> all;
  for (const auto& rank : control.by_rank(padded)) all.insert(rank.begin(), rank.end());
  return static_cast<int64_t>(all.size() - all.count(-1));
}

}  // namespace fleet
