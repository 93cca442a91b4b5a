#include "data/image_sizes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "data/decode.h"

namespace fleet::data {
namespace {

using Clock = std::chrono::steady_clock;

// For images of any size: they are counted by their notes only.
constexpr HeaderBounds kSample{.images = 256, .time = std::chrono::milliseconds(500)};
// Holds the header of nearly every image; a photograph with a large preview is read as a whole.
constexpr size_t kHeaderBytes = 16 << 10;

// A step that visits each of `size` samples once, in an order that is spread over all of them.
int64_t spread_step(int64_t size) {
  auto step = std::max<int64_t>(static_cast<int64_t>(0.618 * static_cast<double>(size)), 1);
  while (std::gcd(step, size) != 1) ++step;
  return step;
}

struct Size {
  int height = 0, width = 0;
  bool operator==(const Size&) const = default;
};

// False if the image cannot be read or is damaged.
bool read_size(const Source& source, int64_t index, Decoder* decoder, std::vector<uint8_t>* scratch,
               Size* size, bool* turned) {
  try {
    Sample sample = source.read_start(index, kHeaderBytes, *scratch);
    if (!sample.encoded) {
      *size = {sample.height, sample.width};
      return true;
    }
    if (!decoder->open(sample.bytes, 3)) {
      if (sample.bytes.size() < kHeaderBytes) return false;
      sample = source.read(index, *scratch);
      if (!decoder->open(sample.bytes, 3)) return false;
    }
    *size = {decoder->height(), decoder->width()};
    *turned = decoder->orientation() != 1;
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string text_of(int height, int width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

bool gives_size(const Settings& data) {
  return data.integer("image.height") > 0 && data.integer("image.width") > 0;
}

// The shorter side to which an evaluation resizes: ImageNet's recipe, 256 for 224.
int64_t usual_resize(const Settings& data, int height, int width) {
  const auto side = std::lround(std::max(height, width) * 256.0 / 224);
  return std::max<int64_t>(side, data.integer("augment.resize"));
}

// The settings that make images of any size fit, as words of a command line. An evaluation needs
// its own, and so does --predict.
std::string settings_to_add(const Settings& data, bool train_resizes, const ImageShape& usual) {
  const auto given = [&](const char* key, int otherwise) {
    const auto size = static_cast<int>(data.integer(key));
    return size > 0 ? size : otherwise;
  };
  const int height = given("image.height", usual.height);
  const int width = given("image.width", usual.width);
  std::vector<std::string> add;
  if (!gives_size(data)) {
    add.push_back("data.image.height=" + std::to_string(height));
    add.push_back("data.image.width=" + std::to_string(width));
  }
  if (!train_resizes) {
    const bool crops = data.integer("augment.random_crop_padding") > 0;
    if (crops) add.emplace_back("data.augment.random_crop_padding=0");
    add.emplace_back("data.augment.random_resized_crop=true");
  }
  if (data.integer("eval.resize") == 0 && data.number("eval.crop_pct") == 0) {
    add.push_back("data.eval.resize=" + std::to_string(usual_resize(data, height, width)));
  }
  for (std::string& one : add) one = "--set " + one;
  return join(add, " ");
}

[[noreturn]] void refuse(const Settings& data, const std::string& what, const std::string& where,
                         bool train_resizes, const ImageShape& usual,
                         const std::string& instead = "") {
  throw ImageSizeError(ErrorCode::kUsage, what, where,
                       "add " + settings_to_add(data, train_resizes, usual) +
                           ", or these keys to the job file" + instead);
}

// Without data.image the first image decides, and another one may be first tomorrow.
void warn_of_size_by_chance(const Settings& data, const InputPipeline* train) {
  if (gives_size(data) || !train || !train->chain().resizes()) return;
  const ImageShape& image = train->image();
  const SizeReport report = read_sizes(
      train->source(),
      [&](int height, int width) { return height == image.height && width == image.width; }, {},
      makes_upright(data));
  if (report.others == 0) return;
  spdlog::warn(
      "data.image is not set: images of different sizes are resized to {} pixels (height x width), "
      "the size of the first one",
      text_of(image.height, image.width));
}

SizeReport report_of(const InputPipeline* split, bool upright) {
  if (!split) return {};
  const AugmentChain& chain = split->chain();
  if (chain.resizes()) {
    return read_sizes(
        split->source(), [](int, int) { return true; }, kSample, upright);
  }
  return read_sizes(
      split->source(), [&](int height, int width) { return chain.fits(height, width); }, {},
      upright);
}

void say_turned(int64_t turned, int64_t seen, bool upright) {
  if (turned == 0) return;
  spdlog::log(upright ? spdlog::level::info : spdlog::level::warn,
              "{} of {} images have a note that a camera stored them turned or mirrored (EXIF "
              "orientation), which is {}",
              turned, seen,
              upright ? "applied (data.exif)"
                      : "ignored, as in torchvision; data.exif=apply turns them upright");
}

}  // namespace

SizeReport read_sizes(const Source& source, const std::function<bool(int height, int width)>& fits,
                      const HeaderBounds& bounds, bool upright) {
  SizeReport report;
  const int64_t size = source.size(), step = spread_step(size);
  const Clock::time_point end = Clock::now() + bounds.time;
  Decoder decoder(upright);
  std::vector<uint8_t> scratch;
  Size first;
  int64_t index = 0;
  for (int64_t i = 0; i < std::min(size, bounds.images); ++i, index = (index + step) % size) {
    if (i % 64 == 63 && Clock::now() > end) break;
    Size found;
    bool turned = false;
    if (!read_size(source, index, &decoder, &scratch, &found, &turned)) continue;
    ++report.seen;
    report.turned += turned;
    if (fits(found.height, found.width)) continue;
    if (report.others++ == 0) {
      first = found;
      report.example = index;
      report.height = found.height;
      report.width = found.width;
    }
    report.alike = report.alike && found == first;
  }
  return report;
}

void check_sizes(const Settings& data, const InputPipeline* train, const InputPipeline* test,
                 const ImageShape& usual) {
  const bool upright = makes_upright(data);
  const SizeReport of_train = report_of(train, upright), of_test = report_of(test, upright);
  say_turned(of_train.turned + of_test.turned, of_train.seen + of_test.seen, upright);
  if (of_train.others == 0 && of_test.others == 0) return warn_of_size_by_chance(data, train);
  const bool train_differs = of_train.others > 0;
  const SizeReport& report = train_differs ? of_train : of_test;
  const InputPipeline& split = train_differs ? *train : *test;
  const ImageShape& image = split.image();
  const std::string what = "the image is of another size: " + text_of(report.height, report.width) +
                           " pixels (height x width), but " +
                           (gives_size(data) ? "data.image is " : "the first image is ") +
                           text_of(image.height, image.width) + ", and nothing resizes " +
                           (train_differs ? "training" : "test") + " images (" +
                           std::to_string(report.others) + " of " + std::to_string(report.seen) +
                           " have other sizes)";
  const bool all = report.alike && report.others == report.seen && gives_size(data);
  refuse(data, what, split.source().name(report.example), !train_differs, usual,
         all ? "; or set data.image to " + text_of(report.height, report.width) : "");
}

void refuse_first_sizes(const Settings& data, const InputPipeline& train, const InputPipeline& test,
                        const ImageShape& usual) {
  const ImageShape &a = train.image(), &b = test.image();
  refuse(data,
         "the first test image is of another size, " + text_of(b.height, b.width) +
             " pixels (height x width), than the first training image, " +
             text_of(a.height, a.width),
         "data.image", train.chain().resizes(), usual, "; or use images of one size");
}

}  // namespace fleet::data
