#include "node/log_rotation.h"

#include <algorithm>

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
  // A line without end: cut it at a redrawn bar, if there is one.
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

}  // namespace fleet
