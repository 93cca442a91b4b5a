#include "node/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bounded_call.h"
#include "base/error.h"
#include "base/log.h"
#include "base/one_line.h"
#include "base/owned_file.h"
#include "base/text.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

// file name -> path of the log.
using Logs = std::map<std::string, std::string>;

void find_in_folder(const fs::path& folder, const Logs& logs,
                    std::map<std::string, std::vector<LogPiece>>* found) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const size_t dot = name.rfind('.');
    long long number = 0;
    if (dot == name.npos || !parse_int(name.substr(dot + 1), &number)) continue;
    const auto log = logs.find(name.substr(0, dot));
    if (log == logs.end() || number < 1 || number > 1'000'000'000) continue;
    std::error_code gone;
    LogPiece piece{log->second + "." + std::to_string(number), static_cast<int>(number), 0, {}};
    piece.size = static_cast<int64_t>(entry->file_size(gone));
    if (!gone) piece.changed = entry->last_write_time(gone);
    if (!gone) (*found)[log->second].push_back(std::move(piece));
  }
}

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

std::map<std::string, std::vector<LogPiece>> find_log_pieces(
    const std::vector<std::string>& paths) {
  std::map<fs::path, Logs> folders;
  for (const std::string& path : paths) {
    const fs::path log(path);
    folders[log.has_parent_path() ? log.parent_path() : "."][log.filename().string()] = path;
  }
  std::map<std::string, std::vector<LogPiece>> found;
  for (const auto& [folder, logs] : folders) find_in_folder(folder, logs, &found);
  for (auto& [path, pieces] : found) {
    std::sort(pieces.begin(), pieces.end(),
              [](const LogPiece& a, const LogPiece& b) { return a.number < b.number; });
  }
  return found;
}

std::vector<LogPiece> find_log_pieces(const std::string& path) {
  return std::move(find_log_pieces(std::vector<std::string>{path})[path]);
}

LogCut cut_log(std::string_view output, int64_t size, bool at_line_start, int64_t max_size) {
  const auto length = static_cast<int64_t>(output.size());
  if (size + length <= max_size) return {output.size(), false};
  const auto room = static_cast<size_t>(std::max<int64_t>(0, max_size - size));
  const size_t last = room > 0 ? output.rfind('\n', room - 1) : std::string_view::npos;
  if (last != std::string_view::npos) return {last + 1, true};
  if (at_line_start && size > 0) return {0, true};
  // The line in progress began in this file.
  const auto most = static_cast<size_t>(std::max<int64_t>(0, max_size + kLongestLogLine - size));
  const size_t end = output.substr(0, most).find('\n');
  if (end != std::string_view::npos) return {end + 1, true};
  if (output.size() < most) return {output.size(), false};
  // A line without end: cut it at a redrawn bar, if any.
  size_t bar = output.substr(0, most).rfind('\r');
  if (bar != std::string_view::npos && bar + 1 < output.size() && output[bar + 1] != '\n') {
    return {bar + 1, true};
  }
  return {std::min(most, output.size()), true};
}

std::vector<std::string> LogQuota::excess() {
  std::vector<std::string> removed;
  while (total_ > 0 && used_ > total_ && !pieces_.empty()) {
    used_ -= pieces_.front().size;
    removed.push_back(std::move(pieces_.front().path));
    pieces_.pop_front();
  }
  return removed;
}

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

LogFile::LogFile(LogFolder* folder, std::string path, Start start)
    : folder_(folder), path_(std::move(path)) {
  next_number_ = folder_->next_number(path_, start != Start::kFirst);
  struct stat status = {};
  if (start == Start::kRestarted && ::lstat(path_.c_str(), &status) == 0) {
    size_ = status.st_size;  // counted already
    set_aside();
    return;
  }
  open();
  if (start == Start::kReplaced) folder_->make_room(-size_);  // counted already
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

void LogFile::close() {
  if (!file_) return;
  file_.reset();
  folder_->bound_.close(path_, size_);
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

FolderLock::FolderLock(const std::string& folder, const std::string& who)
    : path_(folder + "/.fleetrun") {
  try {
    file_ = open_owned_file(path_, O_RDWR | O_CREAT, 0666);
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
    return;
  }
  // A lock of the open file, not of the process: a guardian that outlives its fleetrun still
  // writes.
  struct flock all {};
  all.l_type = F_WRLCK;
  if (::fcntl(file_.get(), F_OFD_SETLK, &all) == 0) {
    const bool written =
        ::ftruncate(file_.get(), 0) == 0 &&
        ::write(file_.get(), who.data(), who.size()) == static_cast<ssize_t>(who.size());
    (void)written;  // only informative
    return;
  }
  if (errno == EAGAIN || errno == EACCES) {
    char text[256];
    const ssize_t size = ::read(file_.get(), text, sizeof text);
    holder_ = size > 0 ? one_line({text, static_cast<size_t>(size)}, 200) : "another fleetrun";
  }
  file_.reset();
}

// The file server may no longer answer: that must not keep the launcher from ending.
FolderLock::~FolderLock() {
  if (!file_) return;
  ends_within(std::chrono::seconds(1),
              [path = path_, file = std::make_shared<UniqueFd>(std::move(file_))] {
                ::unlink(path.c_str());
                file->reset();
              });
}

}  // namespace fleet
