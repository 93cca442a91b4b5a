#include "data/pack_images.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/number_text.h"
#include "base/terminal_text.h"
#include "base/thread.h"
#include "data/fingerprint.h"
#include "data/pack_file.h"
#include "data/packed_image.h"
#include "data/pipeline.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

// A split has at most this many files, so that a rank can hold all of them open.
constexpr int64_t kFiles = 128, kFewestSamples = 16;
constexpr int kMaxInARow = 100;  // damaged images, as in training

// Hashes labels and names: a pack can only be continued with the same data.
std::string fingerprint_text(const Source& source) {
  const Fingerprint print = fingerprint(source);
  return format_printf("%016llx%016llx", static_cast<unsigned long long>(print.labels),
                       static_cast<unsigned long long>(print.files ^ print.images));
}

// Channels of the images of a pack: raw pixels keep theirs.
int channels_of(const Settings& data, const Source& source) {
  std::vector<uint8_t> scratch;
  try {
    const Sample sample = source.read(0, scratch);
    if (!sample.encoded) return sample.channels;
  } catch (const Error&) {  // a damaged image file
  }
  return data.integer("image.channels") == 1 ? 1 : 3;
}

// A folder for one pack: new, or with the part that an earlier run has written.
UniqueFd open_folder(const std::string& folder, const PackManifest& manifest) {
  const std::string path = folder + "/pack.json";
  const bool is_new = !fs::exists(folder);
  make_directories(folder);
  if (!fs::exists(path) && !is_new && !fs::is_empty(folder) && !fs::exists(folder + "/.lock")) {
    throw Error(ErrorCode::kUsage, "the folder is not empty, and no pack", folder,
                "give a new folder");
  }
  UniqueFd held = lock_folder(folder, "fleetrun pack");
  if (!fs::exists(path)) {
    write_file_atomically(path, manifest.text());
  } else if (PackManifest::read(folder).text() != manifest.text()) {
    throw Error(ErrorCode::kUsage, "the folder holds a pack of other data, or with other options",
                folder, "give another folder, or remove this one");
  }
  return held;
}

class Packer {
 public:
  Packer(const Source& source, const PackOptions& options, const PackManifest& manifest,
         const std::string& folder, const std::string& split, bool fail_on_damaged)
      : source_(source),
        options_(options),
        channels_(static_cast<int>(manifest.channels)),
        folder_(folder),
        name_(split),
        split_(*manifest.find(split)),
        fail_on_damaged_(fail_on_damaged) {}

  void run(const std::function<void(const PackProgress&)>& progress, PackResult* result) {
    const auto cores = static_cast<int64_t>(available_cores().size());
    const int64_t wanted = options_.threads > 0 ? options_.threads : cores;
    std::vector<Thread> threads;
    {
      const MutexLock lock(mutex_);
      const auto count = static_cast<size_t>(std::min(wanted, split_.files()));
      if (count > 0) threads = start_threads(count, "pack", [this] { work(); });
      working_ = static_cast<int>(threads.size());
      while (working_ > 0) {
        changed_.wait_for(mutex_, std::chrono::milliseconds(200));
        const PackProgress now = state();
        const MutexUnlock unlock(mutex_);
        progress(now);
      }
    }
    for (Thread& thread : threads) thread.join();
    const MutexLock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    result->samples += split_.samples;
    result->damaged += damaged_;
    result->files += split_.files();
    result->found_files += found_files_;
    result->bytes += bytes_;
  }

 private:
  PackProgress state() const FLEET_REQUIRES(mutex_) {
    return {.split = name_,
            .done = done_,
            .samples = split_.samples,
            .found = found_,
            .damaged = damaged_};
  }

  void work() {
    try {
      PackedImageMaker maker(source_, options_, channels_);
      for (int64_t file; take(&file);) make_file(file, maker);
    } catch (...) {
      const MutexLock lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
    const MutexLock lock(mutex_);
    --working_;
    changed_.notify_all();
  }

  bool take(int64_t* file) {
    const MutexLock lock(mutex_);
    if (error_ || next_ >= split_.files()) return false;
    *file = next_++;
    return true;
  }

  void make_file(int64_t file, PackedImageMaker& maker) {
    const std::string path = pack_path(folder_, name_, file);
    const int64_t count = split_.samples_of(file);
    if (!keep(path, count)) {
      PackWriter writer(path);
      for (int64_t i = 0; i < count; ++i) {
        const PackWriter::Record record = maker.make(file * split_.file_samples + i);
        const bool damaged = record.kind == PackedKind::kDamaged;
        if (damaged) report(record);
        writer.add(record);
        const MutexLock lock(mutex_);
        ++done_;
        if (!damaged) damaged_in_a_row_ = 0;
        if (error_) return;
      }
      writer.finish();
    }
    const MutexLock lock(mutex_);
    bytes_ += fs::file_size(path);
  }

  // Whether an earlier run has written this file, and it is sound. One with damaged images is made
  // again: they may have been corrected, or their file system was gone.
  bool keep(const std::string& path, int64_t count) {
    if (!fs::exists(path)) return false;
    try {
      const PackFile found(path);
      if (found.size() != count) return false;
      found.check_all();
      for (int64_t i = 0; i < count; ++i) {
        if (found.entry(i).kind == PackedKind::kDamaged) return false;
      }
    } catch (const Error& error) {
      spdlog::warn("{}: {}; written again", shown_path(path), error.failure());
      return false;
    }
    const MutexLock lock(mutex_);
    done_ += count;
    found_ += count;
    ++found_files_;
    return true;
  }

  void report(const PackWriter::Record& record) {
    if (fail_on_damaged_) {
      throw Error(ErrorCode::kUsage, "damaged image: " + std::string(record.bytes),
                  std::string(record.name), "correct it, or set data.on_damaged to skip");
    }
    spdlog::warn("{}: damaged image ({}); training will replace it by the next one",
                 std::string(record.name), std::string(record.bytes));
    const MutexLock lock(mutex_);
    ++damaged_;
    if (++damaged_in_a_row_ < kMaxInARow) return;
    throw Error(ErrorCode::kIo,
                std::to_string(kMaxInARow) +
                    " images in a row are damaged, the last one: " + std::string(record.bytes),
                std::string(record.name),
                "check the file system of the images; the same command then resumes");
  }

  const Source& source_;
  const PackOptions options_;
  const int channels_;
  const std::string folder_, name_;
  const PackSplit split_;
  const bool fail_on_damaged_;

  mutable Mutex mutex_;
  CondVar changed_;
  int working_ FLEET_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ FLEET_GUARDED_BY(mutex_);
  int64_t next_ FLEET_GUARDED_BY(mutex_) = 0;  // the next file
  int64_t done_ FLEET_GUARDED_BY(mutex_) = 0, found_ FLEET_GUARDED_BY(mutex_) = 0;
  int damaged_in_a_row_ FLEET_GUARDED_BY(mutex_) = 0;
  int64_t damaged_ FLEET_GUARDED_BY(mutex_) = 0, found_files_ FLEET_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ FLEET_GUARDED_BY(mutex_) = 0;
};

}  // namespace

PackResult pack_images(const Settings& data, const std::string& folder, const PackOptions& given,
                       const std::function<void(const PackProgress&)>& progress) {
  PackOptions options = given;
  options.upright = makes_upright(data);
  if (options.raw && options.size == 0 && data.text("source") != "idx") {
    spdlog::info("raw pixels in full size take much space: --size N packs smaller images");
  }
  if (options.size > 0 && data.text("interpolation") != "float_bilinear") {
    spdlog::warn("data.interpolation has no effect on packing, which resizes with float_bilinear");
  }
  PackManifest manifest{.format = options.raw ? "raw" : "jpeg",
                        .size = options.size,
                        .quality = options.raw ? 0 : options.quality,
                        .upright = options.upright};
  std::vector<std::pair<std::string, std::unique_ptr<Source>>> sources;
  for (const bool train : {true, false}) {
    if (!train && data.number("validation_split") > 0) continue;  // a part of the training data
    std::unique_ptr<Source> source = open_split(
        data, train, true,
        {.seed = options.seed, .classes = options.classes, .ignored_label = options.ignored_label});
    if (!source) continue;
    const int64_t samples = source->size();
    const std::string name = train ? "train" : "test";
    manifest.splits.emplace_back(
        name, PackSplit{.samples = samples,
                        .file_samples = std::max((samples + kFiles - 1) / kFiles, kFewestSamples),
                        .fingerprint = fingerprint_text(*source)});
    if (std::ranges::any_of(source->columns(), is_mask)) {
      throw Error(ErrorCode::kUsage, "a pack holds images and labels, and these images have masks",
                  "data.source", "train on the files");
    }
    if (!find_column(source->columns(), "image")) {
      throw Error(ErrorCode::kUsage, "the source '" + data.text("source") + "' has no images",
                  "data.source", "pack images only");
    }
    if (train) {
      manifest.class_names = class_names(data, *source, options.classes);
      manifest.channels = channels_of(data, *source);
    }
    sources.emplace_back(name, std::move(source));
  }
  const UniqueFd held = open_folder(folder, manifest);
  PackResult result;
  for (const auto& [name, source] : sources) {
    Packer(*source, options, manifest, folder, name, data.text("on_damaged") == "fail")
        .run(progress, &result);
  }
  return result;
}

}  // namespace fleet::data
