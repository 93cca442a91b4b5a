#include "node/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/owned_file.h"

namespace fleet {
namespace {

struct stat status_of(int file) {
  struct stat status = {};
  if (::fstat(file, &status) != 0) status = {};
  return status;
}

bool same_file(int fd, const std::string& path) {
  const struct stat open = status_of(fd);
  struct stat named = {};
  return ::lstat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

LogPosition position(uint64_t file, int64_t at) {
  LogPosition made;
  made.set_file(file);
  made.set_at(at);
  return made;
}

}  // namespace

LogPosition end_of_log(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return position(status.st_ino, status.st_size);
}

LogPosition tail_of_log(const std::string& path, const LogPosition& begin, const LogPosition& end,
                        int64_t most) {
  std::vector<LogPosition> ends;  // ends of the kept files, oldest first
  for (const LogPiece& piece : find_log_pieces(path)) ends.push_back(end_of_log(piece.path));
  ends.push_back(end_of_log(path));
  LogPosition tail = begin;
  int64_t seen = 0;
  bool past_end = end.file() != 0;  // files of later runs come last
  for (auto file = ends.rbegin(); file != ends.rend(); ++file) {
    past_end = past_end && file->file() != end.file();
    if (past_end) continue;
    const int64_t until = end.file() == file->file() ? std::min(end.at(), file->at()) : file->at();
    const int64_t from = begin.file() == file->file() ? std::min(begin.at(), until) : 0;
    if (seen + until - from >= most) return position(file->file(), until - (most - seen));
    seen += until - from;
    tail = position(file->file(), from);
    if (begin.file() == file->file()) break;
  }
  return tail;
}

UniqueFd LogReader::open(const std::string& path) {
  try {
    return open_owned_file(path, O_RDONLY);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) return {};
    throw;
  }
}

void LogReader::use(UniqueFd file) {
  file_ = std::move(file);
  inode_ = status_of(file_.get()).st_ino;
}

// Returns false if the file was removed.
bool LogReader::open_marked(UniqueFd* written, const std::vector<LogPiece>& pieces) {
  if (begin_.file() == 0) return false;
  const auto begin_here = [&](UniqueFd* file) {
    const struct stat status = status_of(file->get());
    if (!*file || status.st_ino != begin_.file()) return false;
    if (status.st_size >= begin_.at()) ::lseek(file->get(), begin_.at(), SEEK_SET);
    use(std::move(*file));
    return true;
  };
  for (const LogPiece& piece : pieces) {
    last_ = piece.number;
    UniqueFd closed = open(piece.path);
    if (begin_here(&closed)) return true;
  }
  return begin_here(written);
}

// Opens the current file and lists the pieces closed before it. A listing may miss names that
// appear while it runs but include later ones. If a piece may have been closed during it, a second
// listing certainly includes the oldest.
std::vector<LogPiece> LogReader::list(UniqueFd* written) const {
  for (;;) {
    *written = open(path_);
    std::vector<LogPiece> pieces = find_log_pieces(path_);
    if (*written ? same_file(written->get(), path_) : !open(path_)) return pieces;
    pieces = find_log_pieces(path_);
    if (*written || !pieces.empty()) return pieces;
  }
}

bool LogReader::open_first() {
  UniqueFd written;
  const std::vector<LogPiece> pieces = list(&written);
  if (open_marked(&written, pieces)) return true;
  last_ = 0;
  for (const LogPiece& piece : pieces) {
    if (current_) {
      last_ = piece.number;
    } else if (UniqueFd oldest = open(piece.path)) {
      last_ = piece.number;
      use(std::move(oldest));
      return true;
    }
  }
  if (written) use(std::move(written));
  return static_cast<bool>(file_);
}

bool LogReader::open_next() {
  if (same_file(file_.get(), path_)) return false;
  // The file has been closed: find its successor. If it is missing, it was removed, and so was
  // everything before the oldest piece. Open the current file first: it is next only if no piece
  // was closed before.
  UniqueFd written = open(path_);
  const std::vector<LogPiece> pieces = find_log_pieces(path_);
  for (const LogPiece& piece : pieces) {
    if (piece.number > last_ && same_file(file_.get(), piece.path)) last_ = piece.number;
  }
  int number = last_ + 1;  // opened by name: a listing may miss it but include later ones
  UniqueFd next = open(path_ + "." + std::to_string(number));
  for (size_t i = 0; !next && i < pieces.size(); ++i) {
    if (pieces[i].number <= last_) continue;
    number = pieces[i].number;
    next = open(pieces[i].path);
  }
  if (next) {
    last_ = number;
  } else {
    next = std::move(written);
  }
  if (!next) return false;
  use(std::move(next));
  return true;
}

// Up to `most` bytes that precede the end mark.
size_t LogReader::wanted(size_t most) const {
  if (end_.file() == 0 || inode_ != end_.file()) return most;
  const off_t here = ::lseek(file_.get(), 0, SEEK_CUR);
  return static_cast<size_t>(std::clamp<int64_t>(end_.at() - here, 0, static_cast<int64_t>(most)));
}

std::string LogReader::next(size_t most) {
  if (!file_ && !open_first()) return {};
  std::string piece;
  for (;;) {
    piece.resize(wanted(most));
    if (piece.empty()) return piece;
    // Otherwise the file no longer grows.
    const bool current = same_file(file_.get(), path_);
    const ssize_t n = ::read(file_.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("cannot read the log", path_);
    if (n == 0 && !current && inode_ != end_.file() && open_next()) continue;
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
