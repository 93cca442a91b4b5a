#include "node/log_rotation.h"

#include <algorithm>

#include "base/text.h"

namespace fleet {

std::vector<LogPiece> find_log_pieces(const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<LogPiece> pieces;
  const fs::path log(path);
  const std::string stem = log.filename().string() + ".";
  std::error_code error;
  for (fs::directory_iterator entry(log.has_parent_path() ? log.parent_path() : ".", error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    long long number = 0;
    if (!name.starts_with(stem) || !parse_int(name.substr(stem.size()), &number)) continue;
    if (number < 1 || number > 1'000'000'000) continue;
    std::error_code gone;
    LogPiece piece{path + "." + std::to_string(number), static_cast<int>(number), 0, {}};
    piece.size = static_cast<int64_t>(entry->file_size(gone));
    if (!gone) piece.changed = entry->last_write_time(gone);
    if (!gone) pieces.push_back(std::move(piece));
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const LogPiece& a, const LogPiece& b) { return a.number < b.number; });
  return pieces;
}

LogCut cut_log(std::string_view output, int64_t size, bool at_line_start, int64_t max_size) {
  const auto length = static_cast<int64_t>(output.size());
  if (size + length <= max_size) return {output.size(), false};
  const auto room = static_cast<size_t>(std::max<int64_t>(0, max_size - size));
  const size_t last = room > 0 ? output.rfind('\n', room - 1) : std::string_view::npos;
  if (last != std::string_view::npos) return {last + 1, true};
  if (at_line_start && size > 0) return {0, true};
  // The line that is being written began in this file.
  const auto most = static_cast<size_t>(std::max<int64_t>(0, max_size + kLongestLogLine - size));
  const size_t end = output.substr(0, most).find('\n');
  if (end != std::string_view::npos) return {end + 1, true};
  if (output.size() < most) return {output.size(), false};
  // Endless: where a bar is drawn anew, if there is such a place.
  size_t bar = output.substr(0, most).rfind('\r');
  if (bar != std::string_view::npos && bar + 1 < output.size() && output[bar + 1] != '\n') {
    return {bar + 1, true};
  }
  return {std::min(most, output.size()), true};
}

std::vector<std::string> LogBound::excess() {
  std::vector<std::string> removed;
  while (total_ > 0 && used_ > total_ && !pieces_.empty()) {
    used_ -= pieces_.front().size;
    removed.push_back(std::move(pieces_.front().path));
    pieces_.pop_front();
  }
  return removed;
}

}  // namespace fleet
