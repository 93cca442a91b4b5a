#include "viewing/report/run_report.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "base/small_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "node/log_file.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr double kSlack = 5;            // seconds between clocks, and between two events
constexpr double kEndOfServers = 60;    // seconds that servers may live after the last event
constexpr int64_t kMaxOfLog = 4 << 20;  // bytes of a log's end that are searched
constexpr size_t kMaxPieces = 4;        // per log
constexpr size_t kMaxLogs = 64, kMaxWarnings = 60, kMaxStacks = 64;
constexpr size_t kMaxOfStack = 32 << 10, kMaxOfProfile = 64 << 10;

std::string cut(std::string text, size_t most) {
  if (text.size() <= most) return text;
  text.resize(most);
  return text + "\n... cut off";
}

// The last `most` bytes, from the beginning of a line.
std::string end_of_file(const std::string& path, int64_t most) {
  const RegularFile file = open_regular_file(path);
  const int64_t begin = std::max<int64_t>(file.size - most, 0);
  std::string text(static_cast<size_t>(file.size - begin), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::pread(file.fd.get(), text.data() + done, text.size() - done,
                              begin + static_cast<int64_t>(done));
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  if (begin > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

// Files of the folder whose name has this beginning and end, by the number in between.
std::vector<std::string> numbered_files(const std::string& folder, const std::string& begin,
                                        const std::string& end) {
  std::vector<std::pair<int, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), last; !error && entry != last;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(begin) || !name.ends_with(end)) continue;
    if (name.size() <= begin.size() + end.size()) continue;
    const std::string number = name.substr(begin.size(), name.size() - begin.size() - end.size());
    if (number.size() > 6 || number.find_first_not_of("0123456789") != number.npos) continue;
    found.emplace_back(std::stoi(number), entry->path());
  }
  std::ranges::sort(found);
  std::vector<std::string> paths;
  for (auto& [number, path] : found) paths.push_back(std::move(path));
  return paths;
}

// Whether a process of this machine holds the lock at this path. Taking the lock to find out could
// make a job that starts now believe that another one is running. The device is not compared: on
// btrfs, stat() and /proc/locks have different ones.
bool is_locked(const std::string& path) {
  struct stat file = {};
  if (::stat(path.c_str(), &file) != 0) return false;
  const std::string inode = ":" + std::to_string(file.st_ino) + " ";
  return small_file("/proc/locks").find(inode) != std::string::npos;
}

// The host that took the run's lock last: "... process 4711 on HOST"; "" if unknown.
std::string host_of_lock(const std::string& folder) {
  const std::string holder(trim(small_file(folder + "/.lock")));
  const size_t on = holder.rfind(" on ");
  return on == holder.npos ? "" : holder.substr(on + 4);
}

bool exists(const std::string& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

// "WARNING 2026-11-24 13:47:45,123 name] text": the time and the text; 0 for another line.
double time_of_log_line(std::string_view line, std::string_view* text) {
  std::tm local = {};
  int milliseconds = 0, length = 0;
  const std::string head(line.substr(0, 120));
  const int fields = std::sscanf(head.c_str(), "%*[A-Z] %d-%d-%d %d:%d:%d,%d %*[^] ]] %n",
                                 &local.tm_year, &local.tm_mon, &local.tm_mday, &local.tm_hour,
                                 &local.tm_min, &local.tm_sec, &milliseconds, &length);
  if (fields != 7 || length == 0) return 0;
  *text = line.substr(static_cast<size_t>(length));
  local.tm_year -= 1900;
  local.tm_mon -= 1;
  local.tm_isdst = -1;
  return static_cast<double>(std::mktime(&local)) + milliseconds / 1000.0;
}

// Without the stamp of --timestamps: "2026-11-24T13:47:45.123+01:00 ".
std::string_view without_stamp(std::string_view line) {
  constexpr size_t kStamp = 29;
  const bool stamped = line.size() > kStamp && line[4] == '-' && line[10] == 'T' &&
                       line[13] == ':' && line[kStamp] == ' ';
  return stamped ? line.substr(kStamp + 1) : line;
}

// When the file was written last; 0 if unknown.
double changed(const std::string& path) {
  struct stat file = {};
  return ::stat(path.c_str(), &file) == 0 ? static_cast<double>(file.st_mtime) : 0;
}

// Each log after its newest closed pieces: a restart, or --log_max_size, closes a log.
std::vector<std::string> with_closed_pieces(const std::vector<std::string>& logs) {
  const auto pieces = find_log_pieces(logs);
  std::vector<std::string> all;
  for (const std::string& log : logs) {
    const auto found = pieces.find(log);
    const size_t count = found == pieces.end() ? 0 : found->second.size();
    for (size_t i = count - std::min(count, kMaxPieces); i < count; ++i) {
      all.push_back(found->second[i].path);
    }
    all.push_back(log);
  }
  return all;
}

class ReportReader {
 public:
  explicit ReportReader(RunReport* into) : all_(*into) {}

  void read(const std::string& folder, const std::string& given_logs) {
    check_run_folder(folder);
    attempt([&] { all_.run = read_run_history(folder); });
    all_.run.folder = folder;
    all_.running = is_locked(folder + (all_.run.is_reported() ? "/.fleetrun" : "/.lock"));
    all_.host = host_of_lock(folder);
    attempt([&] {
      if (exists(folder + "/profile.txt"))
        all_.profile = cut(end_of_file(folder + "/profile.txt", kMaxOfProfile), kMaxOfProfile);
    });
    all_.evaluation = read_object(folder + "/evaluation.json");
    all_.evaluation_only = read_object(folder + "/evaluation_only.json");
    if (exists(folder + "/verdict.json")) {
      // An earlier job may have left it, and this one may still run.
      read_logs(folder, !all_.run.is_reported());
    } else if (!given_logs.empty()) {
      read_logs(given_logs, true);
    } else if (!all_.run.starts.empty()) {
      read_logs(all_.run.starts.back().text("log_dir"), false);
    }
    note_damage();
  }

 private:
  template <typename Body>
  void attempt(Body body) {
    try {
      body();
    } catch (const Error& error) {
      all_.notes.push_back(error.what());
    }
  }

  std::optional<JsonObject> read_object(const std::string& path) {
    std::optional<JsonObject> object;
    if (!exists(path)) return object;
    attempt([&] { object = JsonObject::parse(read_regular_file(path, 64 << 20)); });
    if (!object) all_.notes.push_back(path + " could not be read");
    return object;
  }

  void note_damage() {
    const RunHistory& run = all_.run;
    if (!exists(run.folder + "/metrics.jsonl")) {
      all_.notes.emplace_back("metrics.jsonl is missing: there are no curves");
    } else if (run.unreadable > 0) {
      all_.notes.push_back(std::to_string(run.unreadable) + " of " + std::to_string(run.lines) +
                           " lines of metrics.jsonl could not be read; a crash cuts off the last");
    }
    if (run.settings.empty() && !run.is_reported())
      all_.notes.emplace_back("config.txt is missing: there are no settings");
  }

  bool is_of_run(const std::string& path) const {
    const double time = changed(path);
    return time >= all_.run.begin - kSlack && time <= end_of_job_ + kSlack;
  }

  bool is_readable_folder(const std::string& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error) && !error) return false;
    if (!error) fs::directory_iterator(folder, error);
    if (!error || error == std::errc::no_such_file_or_directory) return !error;
    all_.notes.push_back("the log folder " + folder + " cannot be read: " + error.message());
    return false;
  }

  std::optional<bool> is_of_job(const JsonObject& verdict) const {
    const std::vector<JsonObject>& starts = all_.run.starts;
    return starts.empty() ? std::nullopt : names_job_of(verdict, starts.back());
  }

  // chosen: the user says that it is the run's.
  void read_logs(const std::string& folder, bool chosen) {
    if (folder.empty() || !is_readable_folder(folder)) return;
    all_.log_folder = folder;
    if (exists(folder + "/verdict.json")) {
      attempt([&] {
        const auto verdict =
            JsonObject::parse(read_regular_file(folder + "/verdict.json", 16 << 20));
        if (!verdict) {
          all_.notes.push_back(folder + "/verdict.json is damaged");
        } else if (is_of_job(*verdict).value_or(chosen || covers_time(*verdict, all_.run.end))) {
          all_.verdict = verdict;
        } else {
          all_.notes.push_back(folder + "/verdict.json belongs to another job");
        }
      });
    }
    end_of_job_ = std::fmax(all_.run.end, all_.verdict ? all_.verdict->number("time") : 0);
    for (const std::string& path : numbered_files(folder, "workerlog.", ".stack")) {
      if (all_.stacks.size() == kMaxStacks) break;
      if (!chosen && !is_of_run(path)) continue;
      attempt([&] {
        all_.stacks.push_back(
            {fs::path(path).filename(), cut(read_regular_file(path, 16 << 20), kMaxOfStack)});
      });
    }
    if (exists(folder + "/servers.jsonl")) {
      attempt([&] {
        all_.servers = last_lines_of_servers(end_of_file(folder + "/servers.jsonl", kMaxOfLog),
                                             all_.run.begin - kSlack, end_of_job_ + kEndOfServers);
      });
    }
    read_warnings(folder);
  }

  void read_warnings(const std::string& folder) {
    std::map<std::string, size_t> index;
    std::vector<std::string> logs = numbered_files(folder, "workerlog.", "");
    std::ranges::move(numbered_files(folder, "workerlog.", ".err"), std::back_inserter(logs));
    if (logs.size() > kMaxLogs) logs.resize(kMaxLogs);
    const double begin = all_.run.begin > 0 ? all_.run.begin - 600 : 0;  // allows for a long start
    const double end = all_.run.begin > 0 ? end_of_job_ + kSlack : HUGE_VAL;
    for (const std::string& path : with_closed_pieces(logs)) {
      attempt([&] {
        const std::string log = end_of_file(path, kMaxOfLog);
        const double shift = zone_shift(log, changed(path));
        for (const std::string& text : warnings_in(log, begin - shift, end - shift)) {
          const auto [found, is_new] = index.emplace(text, all_.warnings.size());
          if (!is_new) {
            ++all_.warnings[found->second].times;
          } else if (all_.warnings.size() < kMaxWarnings) {
            all_.warnings.push_back({text, fs::path(path).filename()});
          } else {
            index.erase(found);
          }
        }
      });
    }
  }

  RunReport& all_;
  double end_of_job_ = 0;
};

}  // namespace

std::optional<bool> names_job_of(const JsonObject& verdict, const JsonObject& start) {
  const std::string of_verdict = verdict.text("run"), of_start = start.text("run");
  if (of_verdict.empty() || of_start.empty()) return std::nullopt;
  return of_verdict == of_start;
}

bool covers_time(const JsonObject& verdict, double time) {
  return time >= verdict.number("started") - kSlack && time <= verdict.number("time") + kSlack;
}

double zone_shift(std::string_view log, double changed) {
  constexpr double kStep = 900, kMost = 15 * 3600;  // time zones differ by quarter hours
  double last = 0;
  for (const std::string_view line : lines_of(log)) {
    std::string_view text;
    if (const double time = time_of_log_line(without_stamp(line), &text); time > 0) last = time;
  }
  const double shift = std::round((changed - last) / kStep) * kStep;
  const bool last_write = std::abs(changed - last - shift) <= kSlack;
  return last > 0 && last_write && std::abs(shift) <= kMost ? shift : 0;
}

std::vector<std::string> warnings_in(std::string_view log, double begin, double end) {
  std::vector<std::string> found;
  for (const std::string_view whole : lines_of(log)) {
    const std::string_view line = without_stamp(whole);
    if (!line.starts_with("WARNING ") && !line.starts_with("ERROR ")) continue;
    std::string_view text;
    const double time = time_of_log_line(line, &text);
    if (time < begin || time > end || text.empty()) continue;
    found.push_back(cut(resolve_output(text), 1000));
  }
  return found;
}

RunReport read_run_report(const std::string& folder, const std::string& log_folder) {
  RunReport report;
  ReportReader(&report).read(folder, log_folder);
  return report;
}

}  // namespace fleet
