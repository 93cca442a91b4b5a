#include "node/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "node/log_rotation.h"

namespace fleet {
namespace {

bool same_file(int fd, const std::string& path) {
  struct stat open = {}, named = {};
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

}  // namespace

UniqueFd LogReader::open(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno != ENOENT) throw_errno("the log cannot be read", path);
  return file;
}

// What is written now may be closed at any moment: it is opened before what was closed is looked
// for, so that nothing between the two is missed.
bool LogReader::open_first() {
  UniqueFd written = open(path_);
  for (const LogPiece& piece : find_log_pieces(path_)) {
    if (current_) {
      last_ = piece.number;
    } else if (UniqueFd oldest = open(piece.path)) {
      last_ = piece.number;
      file_ = std::move(oldest);
      return true;
    }
  }
  file_ = std::move(written);
  return static_cast<bool>(file_);
}

bool LogReader::open_next() {
  if (same_file(file_.get(), path_)) return false;
  UniqueFd written = open(path_);
  // It has been closed: what comes behind it? Where it is not found it has been removed, and so
  // has everything before the oldest.
  const std::vector<LogPiece> pieces = find_log_pieces(path_);
  for (const LogPiece& piece : pieces) {
    if (piece.number > last_ && same_file(file_.get(), piece.path)) last_ = piece.number;
  }
  for (const LogPiece& piece : pieces) {
    if (piece.number <= last_) continue;
    UniqueFd next = open(piece.path);
    if (!next) continue;
    last_ = piece.number;
    file_ = std::move(next);
    return true;
  }
  if (!written) return false;
  file_ = std::move(written);
  return true;
}

std::string LogReader::next(size_t most) {
  if (!file_ && !open_first()) return {};
  std::string piece(most, '\0');
  for (;;) {
    const bool current = same_file(file_.get(), path_);  // else nothing is added to it any more
    const ssize_t n = ::read(file_.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("the log cannot be read", path_);
    if (n == 0 && !current && open_next()) continue;
    piece.resize(static_cast<size_t>(n));
    return piece;
  }
}

bool LogReader::read(const std::function<void(std::string_view)>& take) {
  if (!file_ && !open_first()) return false;
  for (std::string piece; !(piece = next(64 << 10)).empty();) take(piece);
  return true;
}

}  // namespace fleet
