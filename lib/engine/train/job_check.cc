#include "train/job_check.h"

#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "optim/schedule.h"
#include "train/class_weights.h"
#include "train/evaluation_tracker.h"
#include "train/initial_weights.h"
#include "train/job_data.h"
#include "train/job_task.h"
#include "train/language_weights.h"
#include "train/teacher.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

// The data decide the number of steps of an epoch, on which no rule depends.
constexpr int64_t kAnySteps = 1000;

// The images that a network is checked for.
struct CheckedImages {
  data::ImageShape known;            // dimensions that only the data tell are 0
  Shape shape;                       // with the model's own dimensions for those that are not known
  std::vector<std::string> unknown;  // keys of the dimensions that only the data tell
};

CheckedImages images_of(const Job& job, const data::ImageShape& known) {
  CheckedImages images{.known = known, .shape = image_of_columns(expected_columns(job, known))};
  if (images.shape.rank() == 0) return images;  // data without images
  if (known.channels == 0) images.unknown.emplace_back("data.image.channels");
  if (known.height == 0) images.unknown.emplace_back("data.image.height");
  if (known.width == 0) images.unknown.emplace_back("data.image.width");
  return images;
}

// Whether the network can be built for images whose size is partly a guess.
bool fits(const Job& job, const ProgramOptions& options) {
  const Silence silence;
  try {
    build_network(job, options);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string not_checked(const CheckedImages& images, bool fitting) {
  if (images.unknown.empty()) return "";
  return std::string(fitting ? "data and size of images" : "data and network") +
         " not checked, because the job does not set " + join(images.unknown, ", ") +
         (fitting ? "; the network was checked for images of " + images.shape.text() : "");
}

// Whether the weights with which the job starts fit its model, by names, shapes and types.
void check_start_weights(const Job& job, const Program& program) {
  const std::string& given = job.checkpoint.text("weights");
  const std::string path = given.empty() ? model_weights(job) : given;
  if (path.empty()) return;
  HeadWeights heads;
  TensorFile file = open_job_weights(job, path, &heads);
  WeightsOptions options = weights_options(job, path, file.metadata);
  options.skip.insert(options.skip.end(), heads.missing.begin(), heads.missing.end());
  options.unused = heads.unused;
  check_weights(std::move(file), path, options, program);
}

data::ImageShape given_image(const Job& job) {
  const auto size = [&](const char* key) {
    return static_cast<int>(job.data.integer(std::string("image.") + key));
  };
  return {size("channels"), size("height"), size("width")};
}

}  // namespace

std::string check_training(const Job& job, const ProgramOptions& given,
                           const std::function<void(const Program&)>& inspect) {
  check_task(job);
  ProgramOptions options = given;
  const DataPart part = data_part(job, options);
  const data::DataOutline outline =
      data::check_data_settings(job.data, data_context(job, options.backend, part));
  check_class_weights(job);
  const Schedule schedule(job.schedule, kAnySteps, job.train.integer("epochs"),
                          job.data.integer("batch_size") * part.parts,
                          job.train.integer("max_steps"));
  const CheckedImages images = images_of(job, outline.image);
  options.columns = expected_columns(job, images.known);
  const bool fitting = images.unknown.empty() || fits(job, options);
  if (!fitting) {
    check_job(job, options);
    return not_checked(images, fitting);
  }
  const BuiltProgram built = build_program(job, options);
  if (inspect) inspect(built.program);
  make_evaluation_tracker(job, {.has_data = outline.has_test,
                                .schedule_observes = schedule.depends_on_evaluations(),
                                .metrics = built.training.metrics->metrics,
                                .headline = built.training.metrics->headline,
                                .more_metrics = built.training.metrics->more_metrics});
  if (!job.train.boolean("evaluate_only")) {
    check_weights_skip(job, built.program);
    check_start_weights(job, built.program);
    if (has_teacher(job)) check_teacher(teacher_of(job), images.shape);
  }
  return not_checked(images, fitting);
}

std::string check_network_only(const Job& job, const ProgramOptions& given) {
  check_job(job, given);
  ProgramOptions options = given;
  const CheckedImages images = images_of(job, given_image(job));
  options.columns = expected_columns(job, images.known);
  const bool fitting = images.unknown.empty() || fits(job, options);
  if (images.unknown.empty()) build_network(job, options);
  return not_checked(images, fitting);
}

}  // namespace fleet
