#include "train/tensorboard_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/number_text.h"
#include "base/owned_file.h"
#include "proto/tensorboard.pb.h"

namespace fleet {
namespace {

using TensorboardEvent = tensorboard::Event;  // not fleet::Event
using tensorboard::Summary;

constexpr int kStringType = 7;
constexpr std::chrono::seconds kRetryTime{60};

template <typename T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// As in TensorFlow's crc32c.h: checksums of data that contains checksums are weak.
uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

std::string serialized(const TensorboardEvent& event) { return event.SerializeAsString(); }

// Protobuf refuses other bytes in its strings.
std::string utf8(const std::string& text) {
  const bool ascii = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (ascii) return text;
  std::string safe;
  for (const char c : text) safe += c >= 0x20 && c < 0x7f ? c : '?';
  return safe;
}

class SummaryMaker {
 public:
  explicit SummaryMaker(Summary* into) : summary_(*into) {}

  void add(const std::string& tag, double value) {
    auto* one = summary_.add_value();
    one->set_tag(utf8(tag));
    one->set_simple_value(static_cast<float>(value));
  }
  void add(const std::string& tag, bool value) { add(tag, value ? 1.0 : 0.0); }
  void add(const std::string& tag, int64_t value) { add(tag, static_cast<double>(value)); }
  void add(const std::string& tag, const std::string& value) {
    auto* one = summary_.add_value();
    one->set_tag(utf8(tag));
    one->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
    one->mutable_tensor()->set_dtype(kStringType);
    one->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(1);
    one->mutable_tensor()->add_string_val(value);
  }
  template <typename T>
  void add(const std::string& tag, const std::vector<T>& values) {
    for (size_t i = 0; i < values.size(); ++i) add(tag + "/" + std::to_string(i), values[i]);
  }

 private:
  Summary& summary_;
};

int64_t step_of(const EventLine& line) {
  for (const auto& [name, value] : line.values()) {
    if (name != "step" && name != "steps") continue;
    if (const auto* step = std::get_if<int64_t>(&value)) return *step;
  }
  return 0;
}

// The number of the bucket of a positive value: limits are 1e-12 * 1.1 ^ n, as in TensorFlow.
int bucket_of(double value) {
  return static_cast<int>(std::ceil(std::log(value / 1e-12) / std::log(1.1)));
}

}  // namespace

std::string tensorboard_record(std::string_view content) {
  const std::string length = little_endian(static_cast<uint64_t>(content.size()));
  std::string record = length + little_endian(masked(crc32c(length)));
  record += content;
  return record + little_endian(masked(crc32c(content)));
}

std::string tensorboard_scalars(const EventLine& line, double time) {
  TensorboardEvent event;
  event.set_wall_time(time);
  event.set_step(step_of(line));
  SummaryMaker maker(event.mutable_summary());
  for (const auto& [name, value] : line.values()) {
    if (name == "step") continue;  // it is the event's
    std::visit([&](const auto& v) { maker.add(line.kind() + "/" + name, v); }, value);
  }
  return event.summary().value_size() == 0 ? std::string() : serialized(event);
}

std::string tensorboard_images(std::span<const TensorboardImage> images, int64_t step,
                               double time) {
  TensorboardEvent event;
  event.set_wall_time(time);
  event.set_step(step);
  for (const TensorboardImage& image : images) {
    auto* value = event.mutable_summary()->add_value();
    value->set_tag(image.tag);
    value->mutable_image()->set_height(image.height);
    value->mutable_image()->set_width(image.width);
    value->mutable_image()->set_colorspace(image.channels);
    value->mutable_image()->set_encoded_image_string(image.png);
  }
  return images.empty() ? std::string() : serialized(event);
}

std::string tensorboard_histogram(const std::string& tag, std::span<const double> values,
                                  int64_t step, double time) {
  TensorboardEvent event;
  event.set_wall_time(time);
  event.set_step(step);
  auto* value = event.mutable_summary()->add_value();
  value->set_tag(tag);
  auto& histogram = *value->mutable_histo();
  std::map<double, double> buckets;  // by upper end
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    least = std::min(least, x);
    most = std::max(most, x);
    histogram.set_num(histogram.num() + 1);
    histogram.set_sum(histogram.sum() + x);
    histogram.set_sum_squares(histogram.sum_squares() + x * x);
    // Of a negative value, the limit nearer to 0 is the upper end.
    const double size = std::abs(x);
    const int n = size > 1e-12 ? bucket_of(size) - (x < 0) : 0;
    const double limit = size > 1e-12 ? std::copysign(1e-12 * std::pow(1.1, n), x) : 1e-12;
    buckets[limit] += 1;
  }
  if (buckets.empty()) return {};
  histogram.set_min(least);
  histogram.set_max(most);
  // An empty bucket before each run of buckets: a reader takes the limit before as the lower end.
  double before = -HUGE_VAL;
  for (const auto& [limit, count] : buckets) {
    const double lower = limit > 1e-12 ? limit / 1.1 : limit > -1e-12 ? -1e-12 : limit * 1.1;
    if (lower > before + std::abs(lower) * 1e-9) {
      histogram.add_bucket_limit(lower);
      histogram.add_bucket(0);
    }
    histogram.add_bucket_limit(limit);
    histogram.add_bucket(count);
    before = limit;
  }
  return serialized(event);
}

void TensorboardFile::open() {
  static std::atomic<int> number{0};  // counts in this process: tests have several trainers in one
  make_directories(folder_);
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const auto seconds = static_cast<long long>(unix_seconds());  // NOLINT(runtime/int)
  path_ = folder_ + format_printf("/events.out.tfevents.%010lld.%s.%d.%d", seconds, host,
                                  static_cast<int>(::getpid()), number++);
  UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) throw_errno("cannot create the event file", path_);
  TensorboardEvent version;
  version.set_wall_time(unix_seconds());
  version.set_file_version("brain.Event:2");
  std::string head = tensorboard_record(serialized(version));
  if (step_ > 0) {
    TensorboardEvent start;
    start.set_wall_time(unix_seconds());
    start.set_step(step_);
    start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
    head += tensorboard_record(serialized(start));
  }
  try {
    write_all(file.get(), head, path_);
  } catch (const Error&) {
    ::unlink(path_.c_str());
    throw;
  }
  file_ = std::move(file);
}

void TensorboardFile::append(const std::string& content) {
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  try {
    write_all(file_.get(), tensorboard_record(content), path_);
  } catch (const Error&) {  // leave no partial record behind: no reader could skip it
    (void)!::ftruncate(file_.get(), size);
    throw;
  }
}

void TensorboardFile::write(const std::string& content) {
  if (content.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  if (failure_ && now < retry_) throw *failure_;
  try {
    if (!file_) open();
    append(content);
    failure_.reset();
  } catch (const Error& error) {
    failure_ = error;
    retry_ = now + kRetryTime;
    throw;
  }
}

}  // namespace fleet
