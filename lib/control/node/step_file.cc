#include "node/step_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace fleet {
namespace {

// Of a file that was truncated under a writer that does not append, the beginning is zeros.
std::string_view without_zeros(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of('\0'), line.size()));
  return trim(line);
}

}  // namespace

std::vector<StepText> StepFile::read(int64_t now_ns, int64_t unix_ns, bool ended) {
  std::vector<StepText> lines;
  struct stat status = {};
  if (path_.empty() || (!file_ && !open())) return lines;
  read_new(&status, &lines);
  if (lines.empty() && is_replaced(status) && open()) read_new(&status, &lines);
  if (ended && !without_zeros(held_).empty()) split("\n", &lines);
  const int64_t changed = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  const int64_t last = std::clamp(now_ns - (unix_ns - changed), std::min(last_ns_, now_ns), now_ns);
  // The first lines have no earlier moment from which to count.
  const int64_t begin = last_ns_ == 0 ? last : last_ns_;
  const auto count = static_cast<int64_t>(lines.size());
  for (int64_t i = 0; i < count; ++i) {
    lines[static_cast<size_t>(i)].at_ns = last - (last - begin) / count * (count - 1 - i);
  }
  if (count > 0) last_ns_ = last;
  return lines;
}

bool StepFile::open() {
  UniqueFd file(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  file_ = std::move(file);
  offset_ = 0;
  held_.clear();
  skips_ = false;
  return true;
}

bool StepFile::is_replaced(const struct stat& status) const {
  struct stat there = {};
  return ::lstat(path_.c_str(), &there) == 0 &&
         (there.st_ino != status.st_ino || there.st_dev != status.st_dev);
}

void StepFile::read_new(struct stat* status, std::vector<StepText>* lines) {
  if (::fstat(file_.get(), status) != 0) return;
  if (status->st_size < offset_) {  // truncated
    offset_ = 0;
    held_.clear();
    skips_ = false;
  }
  const int64_t unread = status->st_size - offset_;
  if (const auto most = static_cast<int64_t>(kMostBytes); unread > most) {
    bytes_ += unread - most;
    offset_ = status->st_size - most;
    held_.clear();
    skips_ = true;
  }
  std::array<char, 16 << 10> buffer;
  while (offset_ < status->st_size) {
    const auto wanted = std::min<int64_t>(status->st_size - offset_, buffer.size());
    const ssize_t n = ::pread(file_.get(), buffer.data(), static_cast<size_t>(wanted), offset_);
    if (n <= 0) return;  // truncated at this moment, or the disk fails
    offset_ += n;
    bytes_ += n;
    split({buffer.data(), static_cast<size_t>(n)}, lines);
  }
}

void StepFile::split(std::string_view text, std::vector<StepText>* lines) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!skips_) held_ += part;
    if (held_.size() > StepLineFinder::kLongest) {
      lines->push_back({std::exchange(held_, {})});
      skips_ = true;
    }
    if (end == std::string_view::npos) return;
    const std::string_view line = without_zeros(held_);
    if (!skips_ && !line.empty()) lines->push_back({std::string(line)});
    held_.clear();
    skips_ = false;
  }
}

}  // namespace fleet
