#include "data/line_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "base/cache_file.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file_status.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/owned_file.h"
#include "base/regular_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/maker_lock.h"
#include "data/source.h"
#include "data/storage.h"
#include "data/tar_files.h"
#include "text/gzip_text.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTarMagicAt = 257, kStart = 512;
constexpr double kLineSeconds = 10;  // between lines of progress
constexpr uint64_t kVersion = 1;     // increase it to invalidate all caches

enum class Kind { kLines, kGzip, kTar };

std::string start_of(const std::string& path, uint64_t begin) {
  const RegularFile file = open_regular_file(path);
  std::string start(kStart, '\0');
  start.resize(read_at(file.fd, start.data(), start.size(), begin, path));
  return start;
}

Kind kind_of(std::string_view start, const std::string& shown) {
  if (start.starts_with("\x1f\x8b")) return Kind::kGzip;
  if (start.size() == kStart && start.substr(kTarMagicAt).starts_with("ustar")) return Kind::kTar;
  for (const std::string_view mark :
       {"\x28\xb5\x2f\xfd", "\xfd\x37zXZ", "BZh", "PK\x03\x04", "PAR1"}) {
    if (!start.starts_with(mark)) continue;
    throw Error(ErrorCode::kUsage, "the file is not text, nor compressed by gzip", shown,
                "unpack it, or compress it with gzip");
  }
  return Kind::kLines;
}

bool is_left_out(const std::string& name) {
  const std::string last = name.substr(name.rfind('/') + 1);
  return last.empty() || last[0] == '.' || last[0] == '_';
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code unknown;
    const std::string path = it->path().string();
    if (!is_left_out(path) && fs::is_regular_file(path, unknown)) paths.push_back(path);
  }
  if (error) {
    check_answer(error.value(), folder);
    throw Error(ErrorCode::kIo, "cannot read the folder: " + error.message(), shown_path(folder));
  }
  if (paths.empty()) {
    throw Error(ErrorCode::kUsage, "the folder contains no file", shown_path(folder),
                "put the files there; names that begin with '.' or '_' are left out");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string plain_name(const std::string& path, const LineFileRequest& request) {
  std::error_code unknown;
  const auto written = fs::last_write_time(path, unknown).time_since_epoch().count();
  const std::string name =
      format_printf("lines-%016llx.txt",
                    static_cast<unsigned long long>(hash_file_state(path, written, kVersion)));
  const std::string cached = request.cache.empty() ? cache_file(name) : request.cache + "/" + name;
  if (!cached.empty()) return cached;
  throw Error(ErrorCode::kUsage, "no folder for decompressed files is known: HOME is not set",
              "data.cache_folder", "set it to a folder");
}

// One process does it at a time, and a killed one's part is written again.
void decompress(const std::string& path, const std::string& to, MakerLock& lock) {
  constexpr size_t kPiece = size_t{4} << 20;
  spdlog::info("decompressing {} into {}", shown_path(path), shown_path(to));
  text::GzipText text(path);
  const std::string part = to + ".part";
  const UniqueFd file(::open(part.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
  if (!file) throw_errno("cannot write the decompressed file", shown_path(part));
  std::string piece;
  uint64_t all = 0;
  double said = monotonic_seconds();
  try {
    while (text.read(&piece, kPiece) > 0) {
      write_all(file.get(), piece, part);
      all += piece.size();
      piece.clear();
      if (monotonic_seconds() - said < kLineSeconds) continue;
      said = monotonic_seconds();
      lock.publish(mebibytes(all));
      spdlog::info("decompressing {}: {}", shown_path(path), mebibytes(all));
    }
    if (::fsync(file.get()) != 0 || ::rename(part.c_str(), to.c_str()) != 0) {
      throw_errno("cannot write the decompressed file", shown_path(to));
    }
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
}

class Finder {
 public:
  explicit Finder(const LineFileRequest& request) : request_(request) {}

  void add(const std::string& path) {
    const std::string shown = shown_path(path);
    const Kind kind = kind_of(start_of(path, 0), shown);
    if (kind != Kind::kGzip) return add_plain(path, shown, kind);
    const std::string plain = plain_name(path, request_);
    make_once(plain, "which decompresses " + shown,
              [&](MakerLock& lock) { decompress(path, plain, lock); });
    const Kind inner = kind_of(start_of(plain, 0), shown);
    if (inner == Kind::kGzip) refuse_inner(shown);
    add_plain(plain, shown, inner);
  }
  std::vector<LineFile> take() { return std::move(files_); }

 private:
  [[noreturn]] static void refuse_inner(const std::string& shown) {
    throw Error(ErrorCode::kUsage, "a compressed file within the file", shown, "unpack it");
  }

  void add_plain(const std::string& path, const std::string& shown, Kind kind) {
    if (kind == Kind::kLines) {
      files_.push_back({path, shown, 0, static_cast<uint64_t>(open_regular_file(path).size)});
      return;
    }
    const size_t before = files_.size();
    for_each_tar_member(path, [&](const TarMember& member) {
      if (is_left_out(member.name)) return;
      const std::string name = shown + ":" + shown_path(member.name);
      const std::string start = member.size == 0 ? "" : start_of(path, member.offset);
      if (kind_of(start.substr(0, member.size), name) == Kind::kGzip) refuse_inner(name);
      files_.push_back({path, name, member.offset, member.size});
    });
    if (files_.size() > before) return;
    throw Error(ErrorCode::kUsage, "the tar file contains no file", shown, "name another file");
  }

  const LineFileRequest& request_;
  std::vector<LineFile> files_;
};

bool is_pattern(const std::string& word) { return word.find_first_of("*?[{") != std::string::npos; }

}  // namespace

std::vector<LineFile> find_line_files(const LineFileRequest& request) {
  Finder finder(request);
  for (const std::string& word : request.words) {
    std::error_code unknown;
    const std::string whole = under_root(request.root, word);
    if (fs::is_directory(whole, unknown)) {
      for (const std::string& path : files_in(whole)) finder.add(path);
      continue;
    }
    check_answer(unknown.value(), whole);
    const std::vector<std::string> paths = fs::exists(whole, unknown)
                                               ? std::vector<std::string>{whole}
                                               : shard_names(word, request.root);
    for (const std::string& path : paths) finder.add(path);
  }
  return finder.take();
}

void check_line_files(const LineFileRequest& request) {
  for (const std::string& word : request.words) {
    const std::string whole = under_root(request.root, word);
    if (is_pattern(word) || path_exists(whole)) continue;
    throw Error(ErrorCode::kUsage, shown_path(whole) + " does not exist", request.key,
                "correct the path");
  }
}

}  // namespace fleet::data
