#include "node/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/text.h"

namespace fleet {
namespace {

// Ignores a file that cannot be opened; opening the log reports it.
void empty(const std::string& path) {
  try {
    const UniqueFd file = open_owned_file(path, O_WRONLY);
    if (::ftruncate(file.get(), 0) != 0) throw_errno("cannot be emptied", path);
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
  }
}

}  // namespace

LogFolder::LogFolder(const wire::LogSettings& settings, const std::vector<std::string>& paths)
    : settings_(settings), bound_(settings.total_size()) {
  std::vector<LogPiece> pieces;
  auto found = find_log_pieces(paths);
  for (const std::string& path : paths) {
    std::vector<LogPiece>& of = found[path];
    if (!of.empty() && !settings.overwrite()) next_numbers_[path] = of.back().number + 1;
    for (LogPiece& piece : of) pieces.push_back(std::move(piece));
    if (settings.overwrite()) empty(path);
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const LogPiece& a, const LogPiece& b) { return a.changed < b.changed; });
  for (const LogPiece& piece : pieces) {
    if (settings.overwrite()) {
      ::unlink(piece.path.c_str());
    } else {
      bound_.grow(piece.size);
      bound_.close(piece.path, piece.size);
    }
  }
}

// A restarted rank's folder has more pieces than at first.
int LogFolder::next_number(const std::string& path, bool restarted) const {
  if (restarted) {
    const std::vector<LogPiece> pieces = find_log_pieces(path);
    return pieces.empty() ? 1 : pieces.back().number + 1;
  }
  const auto found = next_numbers_.find(path);
  return found == next_numbers_.end() ? 1 : found->second;
}

void LogFolder::make_room(int64_t bytes) {
  bound_.grow(bytes);
  for (const std::string& path : bound_.excess()) {
    ::unlink(path.c_str());
    if (!std::exchange(removed_, true)) {
      spdlog::warn(
          "the logs have reached --log_total_size: their oldest pieces are removed, {} first",
          path);
    }
  }
}

void LogFolder::on_failure(const std::string& path, const std::string& reason) {
  if (std::exchange(warned_, true)) return;
  spdlog::error("{}: cannot be written: {}; the job continues without logs until writing succeeds",
                path, reason);
}

void LogFolder::on_success(const std::string& path, int64_t missing) {
  warned_ = false;
  spdlog::warn("writing to {} succeeds again; {} of output are missing from it", path,
               mebibytes(static_cast<size_t>(missing)));
}

LogFile::LogFile(LogFolder* folder, std::string path, bool restarted)
    : folder_(folder), path_(std::move(path)) {
  next_number_ = folder_->next_number(path_, restarted);
  struct stat status = {};
  if (restarted && ::lstat(path_.c_str(), &status) == 0) {
    size_ = status.st_size;  // counted already
    set_aside();
    return;
  }
  open();
  const int64_t max_size = folder_->settings_.max_size();
  if (max_size > 0 && size_ >= max_size) set_aside();
}

void LogFile::open() {
  struct stat status = {};
  try {
    file_ = open_owned_file(path_, O_RDWR | O_CREAT | O_APPEND);
    if (::fstat(file_.get(), &status) != 0) status.st_size = 0;
  } catch (const Error& error) {
    file_.reset();
    folder_->on_failure(path_, error.failure());
  }
  size_ = status.st_size;
  char last = '\n';
  at_line_start_ = size_ == 0 || ::pread(file_.get(), &last, 1, size_ - 1) != 1 || last == '\n';
  folder_->make_room(size_);
}

void LogFile::set_aside() {
  const std::string piece = path_ + "." + std::to_string(next_number_);
  if (::rename(path_.c_str(), piece.c_str()) != 0) {
    folder_->on_failure(piece, std::strerror(errno));
    if (!file_) open();
    return;
  }
  ++next_number_;
  folder_->bound_.close(piece, size_);
  open();
}

void LogFile::write(std::string_view output) {
  const int64_t max_size = folder_->settings_.max_size();
  while (max_size > 0 && file_) {
    const LogCut cut = cut_log(output, size_, at_line_start_, max_size);
    if (!cut.full) break;
    write_here(output.substr(0, cut.bytes));
    output.remove_prefix(cut.bytes);
    const int64_t before = size_;
    set_aside();
    if (size_ == before && before > 0) break;  // setting it aside failed
  }
  write_here(output);
}

void LogFile::write_here(std::string_view output) {
  if (output.empty()) return;
  if (!file_) open();
  folder_->make_room(static_cast<int64_t>(output.size()));
  while (!output.empty()) {
    const ssize_t n = file_ ? ::write(file_.get(), output.data(), output.size()) : -1;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (file_) folder_->on_failure(path_, std::strerror(errno));
      folder_->bound_.grow(-static_cast<int64_t>(output.size()));
      missing_ += static_cast<int64_t>(output.size());
      return;
    }
    if (missing_ > 0) folder_->on_success(path_, std::exchange(missing_, 0));
    size_ += n;
    at_line_start_ = output[static_cast<size_t>(n) - 1] == '\n';
    output.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace fleet
