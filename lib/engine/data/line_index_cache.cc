#include "data/line_index_cache.h"

#include <filesystem>
#include <utility>

#include "base/cache_file.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/terminal_text.h"
#include "data/maker_lock.h"

namespace fleet::data {
namespace {

constexpr uint64_t kIndexVersion = 1;  // increase it to invalidate all caches
constexpr double kBetweenLines = 10;   // seconds

uint64_t total_bytes(const std::vector<LineFile>& files) {
  uint64_t bytes = 0;
  for (const LineFile& file : files) bytes += file.size;
  return bytes;
}

// "" if no folder is known.
std::string index_path(const std::vector<LineFile>& files, const LineIndexOptions& options,
                       const LineIndexCache& cache) {
  uint64_t hash = hash_text(cache.identity, kIndexVersion);
  hash = hash_text(options.header ? "header" : "lines", hash);
  const std::string* last = nullptr;
  for (const LineFile& file : files) {
    hash = hash_text(file.shown, hash);
    hash = hash_bytes(&file.begin, sizeof file.begin, hash);
    hash = hash_bytes(&file.size, sizeof file.size, hash);
    if (last && *last == file.path) continue;  // members of a tar file
    std::error_code unknown;
    const auto written = std::filesystem::last_write_time(file.path, unknown);
    hash = hash_file_state(file.path, written.time_since_epoch().count(), hash);
    last = &file.path;
  }
  const std::string name =
      format_printf("lines-%016llx.index", static_cast<unsigned long long>(hash));
  return cache.folder.empty() ? cache_file(name) : cache.folder + "/" + name;
}

class Progress {
 public:
  Progress(const LineIndexCache& cache, MakerLock* lock) : cache_(cache), lock_(lock) {}
  void operator()(double part) {
    if (monotonic_seconds() - said_ < kBetweenLines) return;
    said_ = monotonic_seconds();
    const std::string text = format_printf("%.0f %%", 100 * part);
    if (lock_) lock_->publish(text);
    if (cache_.verbose) spdlog::info("{}: {} of the lines are read", cache_.name, text);
  }

 private:
  const LineIndexCache& cache_;
  MakerLock* const lock_;
  double said_ = monotonic_seconds();
};

std::shared_ptr<const LineIndex> make_index(std::vector<LineFile> files, LineIndexOptions options,
                                            const LineIndexCache& cache, MakerLock* lock) {
  options.progress = Progress(cache, lock);
  return std::make_shared<LineIndex>(std::move(files), options);
}

std::shared_ptr<const LineIndex> load_index(const std::vector<LineFile>& files,
                                            const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return nullptr;
  return LineIndex::load(files, read_file(path));
}

}  // namespace

std::shared_ptr<const LineIndex> cached_line_index(std::vector<LineFile> files,
                                                   const LineIndexOptions& options,
                                                   const LineIndexCache& cache) {
  const std::string path = options.keep_all_broken || total_bytes(files) < cache.least_bytes
                               ? ""
                               : index_path(files, options, cache);
  if (path.empty()) return make_index(std::move(files), options, cache, nullptr);
  std::shared_ptr<const LineIndex> index;
  bool reads = false;  // errors of the data themselves
  try {
    make_once(path, "which reads the lines of " + cache.name, [&](MakerLock& lock) {
      reads = true;
      index = make_index(files, options, cache, &lock);
      reads = false;
      write_file_atomically(path, index->save());
    });
    if (!index) index = load_index(files, path);
    std::error_code unknown;
    if (!index) std::filesystem::remove(path, unknown);  // damaged: the next start makes it again
  } catch (const Error& error) {
    if (reads || error.code() != ErrorCode::kIo) throw;
    if (cache.verbose) spdlog::info("{}: the index is not kept: {}", cache.name, error.what());
  }
  return index ? index : make_index(std::move(files), options, cache, nullptr);
}

}  // namespace fleet::data
