#include "train/run_output.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "train/run_folder.h"

namespace fleet {

void RunOutput::open(const std::string& folder, const Job& job, int64_t step, bool new_run) {
  folder_ = folder;
  data_ = job.data;
  shows_gradients_ = job.train.boolean("tensorboard_gradients");
  const std::string path = folder + "/metrics.jsonl";
  const std::string tensorboard = tensorboard_folder(folder);
  if (new_run) {
    const auto aside = set_aside(path);
    if (aside) spdlog::info("metrics of an earlier run are now in {}", *aside);
    set_aside(tensorboard);
  }
  if (job.train.boolean("tensorboard")) {
    tensorboard_ = std::make_unique<TensorboardLog>(tensorboard, step);
  }
  events_ = std::make_shared<EventFile>(path);
  writer_ = std::make_unique<OutputWriter>(folder);
  write_file("config.txt", job.settings.print());
}

void RunOutput::open_results(const std::string& folder) {
  folder_ = folder;
  events_ = std::make_shared<EventFile>(folder + "/evaluations.jsonl");
  writer_ = std::make_unique<OutputWriter>(folder);
}

void RunOutput::write(const EventLine& line) {
  if (!writer_) return;
  const double time = unix_seconds();
  TensorboardLog::Task show = tensorboard_ ? tensorboard_->values(line, time) : nullptr;
  writer_->write([file = events_, line, time, show = std::move(show)] {
    file->write(line, time);
    if (show) show();
  });
}

void RunOutput::write_file(const std::string& name, std::string text) {
  if (!writer_) return;
  writer_->write(
      [path = folder_ + "/" + name, text = std::move(text)] { write_file_atomically(path, text); });
}

void RunOutput::show_batch(const data::Batch& batch, int64_t step) {
  if (!tensorboard_ || shown_images_ || batch.image.count() == 0) return;
  shown_images_ = true;
  writer_->write(tensorboard_->images(batch, data_, step));
}

void RunOutput::show_gradients(Executor& executor, double scale, int64_t step) {
  if (tensorboard_ && shows_gradients_) {
    writer_->write(tensorboard_->gradients(executor, scale, step));
  }
}

std::vector<std::string> RunOutput::take_messages() {
  return writer_ ? writer_->take_messages() : std::vector<std::string>();
}

}  // namespace fleet
