// Event files that TensorBoard reads.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "observe/event_file.h"

namespace fleet {

// A record of the file (TFRecord): length, checksum of the length, content, checksum.
std::string tensorboard_record(std::string_view content);

// The values of a line of metrics.jsonl, as an event. A number is the scalar KIND/NAME, those of a
// list are KIND/NAME/0, KIND/NAME/1..., a text is the text KIND/NAME. "" if the line has none.
std::string tensorboard_scalars(const EventLine& line, double time);

struct TensorboardImage {
  std::string tag;
  int height = 0, width = 0, channels = 0;
  std::string png;
};
std::string tensorboard_images(std::span<const TensorboardImage> images, int64_t step, double time);

// The values' distribution: buckets whose sizes grow by a tenth. Ignores values that are not
// finite.
std::string tensorboard_histogram(const std::string& tag, std::span<const double> values,
                                  int64_t step, double time);

// Appends to a new file of the folder, which it creates at the first write. Each record is one
// write(): a killed process leaves whole records. For use by one thread.
class TensorboardFile {
 public:
  // step: at which the run begins; greater than 0: it resumes, and TensorBoard drops the records
  // that an earlier file has from this step on.
  TensorboardFile(std::string folder, int64_t step) : folder_(std::move(folder)), step_(step) {}
  // content: from one of the functions above; "" writes nothing. kIo: the record is not in the
  // file. The failure is repeated for a minute: on a disk that is nearly full, small records would
  // fit and large ones not, and each change would be a message.
  void write(const std::string& content);
  const std::string& path() const { return path_; }  // "": not created yet

 private:
  void open();
  void append(const std::string& content);

  const std::string folder_;
  const int64_t step_;
  std::string path_;
  UniqueFd file_;
  std::optional<Error> failure_;
  std::chrono::steady_clock::time_point retry_;
};

}  // namespace fleet
