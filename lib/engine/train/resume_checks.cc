#include "train/resume_checks.h"

#include "base/error.h"
#include "base/number_text.h"
#include "base/text.h"
#include "train/model_card.h"

namespace fleet {

static void check_validation(const TrainingPosition& saved, const TrainingPosition& own,
                             const std::string& folder) {
  const std::string difference = validation_difference(saved, own);
  if (difference.empty()) return;
  throw Error(ErrorCode::kUsage, difference, folder,
              "set the same data.validation_split and validation_seed, with the same data, or "
              "checkpoint.weights to start a new run from its weights");
}

std::string tokenizer_difference(const data::TokenizerIdentity& saved,
                                 const data::TokenizerIdentity& own) {
  if (saved.hash == 0 || own.hash == 0 || saved.hash == own.hash) return "";
  const auto text = [](const data::TokenizerIdentity& tokenizer) {
    return format_printf("%s (hash %016llx)", tokenizer.file.c_str(),
                         static_cast<unsigned long long>(tokenizer.hash));
  };
  if (own.words) {
    return "was trained with the words of " + text(saved) + ", this job has those of " + text(own);
  }
  return "was trained with the tokenizer " + text(saved) + ", this job's is " + text(own);
}

void check_goes_on(const TrainingPosition& saved, const TrainingPosition& own,
                   std::optional<int64_t> batches, const std::string& folder) {
  if (saved.task != own.task) {
    throw Error(ErrorCode::kUsage,
                "was trained for the task '" + saved.task + "', this job's is '" + own.task + "'",
                folder,
                "set the same task, or checkpoint.weights to start a new run from its weights");
  }
  if (saved.global_batch != own.global_batch) {
    throw Error(ErrorCode::kUsage,
                "was trained with a global batch of " + std::to_string(saved.global_batch) +
                    ", this job's is " + std::to_string(own.global_batch),
                folder,
                "set data.global_batch_size=" + std::to_string(saved.global_batch) +
                    ", which fits any number of ranks that divides it, or checkpoint.new_data=true "
                    "for another phase of training");
  }
  if (saved.seed != own.seed) {
    throw Error(
        ErrorCode::kUsage, "was trained with train.seed " + std::to_string(saved.seed), folder,
        "set the same train.seed, or checkpoint.weights to start a new run from its weights");
  }
  if (const std::string other = tokenizer_difference(saved.tokenizer, own.tokenizer);
      !other.empty()) {
    const std::string first =
        own.tokenizer.words
            ? "set data.vocabulary_file to the file of its words"
            : "set data.tokenizer to the tokenizer that it was trained with, or checkpoint.weights "
              "to start a new run from its weights";
    throw Error(ErrorCode::kUsage, other, folder, first);
  }
  if (const std::string other = network_difference(saved.settings, own.settings); !other.empty()) {
    throw Error(ErrorCode::kUsage, other, folder,
                "set the same, or checkpoint.weights to start a new run from its weights");
  }
  if (!batches) return;
  if (saved.batch > *batches) {
    throw Error(ErrorCode::kUsage,
                "is at batch " + std::to_string(saved.batch) + " of an epoch, the data has " +
                    std::to_string(*batches),
                folder,
                "resume with the data it was trained with, or set checkpoint.new_data=true to use "
                "other data");
  }
  check_same_classes(
      saved.card.classes, own.card.classes, folder,
      "use the data it was trained with, or start from its weights to train a new head "
      "(checkpoint.weights, load_weights())");
  check_validation(saved, own, folder);
}

TrainingPosition at_new_data(TrainingPosition saved, const TrainingPosition& own,
                             const std::string& folder) {
  if (saved.data == own.data && saved.global_batch == own.global_batch) return saved;
  if (saved.step % saved.merged_steps != 0) {
    throw Error(ErrorCode::kUsage,
                "is at step " + std::to_string(saved.step) + ", within an update of " +
                    std::to_string(saved.merged_steps) + " steps",
                folder, "resume from a checkpoint at the end of an update to use other data");
  }
  if (saved.batch > 0) ++saved.epoch;
  saved.batch = 0;
  saved.global_batch = own.global_batch;
  return saved;
}

std::string validation_difference(const TrainingPosition& saved, const TrainingPosition& own) {
  const std::string &before = saved.validation, &now = own.validation;
  if (before == now) return "";
  const auto text = [](const std::string& validation) {
    return validation.empty() ? std::string("none") : "'" + validation + "'";
  };
  return "was trained with the validation split " + text(before) + ", this job's is " + text(now);
}

std::string changed_data(const TrainingPosition& saved, const TrainingPosition& own) {
  if (saved.batch == 0 || saved.data.empty() || own.data.empty() || saved.data == own.data) {
    return "";
  }
  return "the training data have changed within epoch " + std::to_string(saved.epoch) + ", from " +
         saved.data + " to " + own.data +
         ": the rest of this epoch repeats some samples and leaves out others";
}

std::string reached_end(const TrainingPosition& at, const TrainingIntervals& intervals,
                        int64_t batches) {
  // An epoch without a batch left also counts: its end may not have been saved.
  const int64_t epochs = at.epoch + (at.batch >= batches ? 1 : 0);
  std::vector<std::string> keys;
  if (epochs >= intervals.epochs) {
    keys.push_back("train.epochs (" + std::to_string(intervals.epochs) + ")");
  }
  if (intervals.ends_after(at.step)) {
    keys.push_back("train.max_steps (" + std::to_string(intervals.max_steps) + ")");
  }
  if (keys.empty()) return "";
  return "the job has already reached its end, at step " + std::to_string(at.step) + ": raise " +
         join(keys, " and ") + " to train further";
}

TrainingPosition continued(TrainingPosition saved, const TrainingPosition& own) {
  if (!own.card.classes.empty()) saved.card.classes = own.card.classes;
  if (!own.card.image.empty()) saved.card.image = own.card.image;
  if (!own.card.pretrained.empty()) saved.card.pretrained = own.card.pretrained;
  if (!own.settings.empty()) saved.settings = own.settings;
  if (!own.validation.empty()) saved.validation = own.validation;
  saved.data = own.data;
  if (own.tokenizer.hash != 0) saved.tokenizer = own.tokenizer;
  saved.merged_steps = own.merged_steps;
  return saved;
}

}  // namespace fleet
