// Everything that a report of a run shows: its own files, and those of its job's log folder; and
// its page.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewing/runs/run_history.h"

namespace fleet {

struct LogWarning {
  std::string text;
  std::string log;  // the first log that has it
  int times = 1;    // in all logs
};
struct StackFile {
  std::string name, text;
};

struct RunReport {
  RunHistory run;
  bool running = false;               // a process of this host holds the folder
  std::string host;                   // where it ran last; "": unknown
  std::optional<JsonObject> verdict;  // that of this run's job, if it exists
  std::string log_folder;             // "": unknown
  std::vector<StackFile> stacks;
  std::vector<LogWarning> warnings;
  std::string profile;  // profile.txt
  // Of servers.jsonl: the newest line of each parameter server, by number.
  std::vector<JsonObject> servers = {};
  // evaluation.json of the run, and evaluation_only.json of an evaluation without training.
  std::optional<JsonObject> evaluation = {}, evaluation_only = {};
  std::vector<std::string> notes;  // what could not be read
};

// log_folder: "": the one that the run recorded. Several jobs may share a log folder: a verdict
// counts only if it names the job that the run's last start names. If one of them names none, and
// the run recorded the folder, verdict and stacks count only if their time fits the run.
// kUsage if the folder is not that of a run.
RunReport read_run_report(const std::string& folder, const std::string& log_folder);

// Whether verdict and start event name the same job; nullopt if one of them names none.
std::optional<bool> names_job_of(const JsonObject& verdict, const JsonObject& start);
// Whether a job with this verdict can have made an event at that time.
bool covers_time(const JsonObject& verdict, double time);
// Logs have local time without a zone. If the job ran in another zone than ours: the seconds to add
// to the times in its log, which was `changed` (seconds since 1970) with its last line; else 0.
double zone_shift(std::string_view log, double changed);
// The warnings and errors of our programs in a log, from `begin` to `end` (seconds since 1970).
std::vector<std::string> warnings_in(std::string_view log, double begin, double end);

// The newest line of each parameter server in servers.jsonl, from `begin` to `end` (seconds since
// 1970), by its number.
std::vector<JsonObject> last_lines_of_servers(std::string_view lines, double begin, double end);

// --- The HTML page of a report ---

// One page without any request to elsewhere. Its only script sorts tables. All text of the run is
// escaped. The parts of an evaluation take less than 1 MiB.
std::string report_page(const RunReport& report);

// "2026-11-24 13:47:45" of seconds since 1970; "-" if it is unknown.
std::string date_text(double unix_time);
// "1 h 02 min", "3 min 20 s", "12.3 s".
std::string duration_text(double seconds);

// Seconds of a run by use; the parts add up to the whole as far as the run recorded them.
struct TimePart {
  std::string name;
  double seconds = 0;
};
std::vector<TimePart> time_parts(const RunReport& report);

// A picture of the activity of each rank over time, as HTML that fits any width. One row for each
// rank: computing, waiting for data, waiting for other ranks, as shares of its steps; above them
// the evaluations and starts. The failed rank is marked. "" if the run recorded nothing of it. Of
// more than 64 ranks, the slowest ones.
std::string rank_timeline(const RunReport& report);
const char* rank_timeline_style();
// A table of the trainers that were started again in their places, as HTML; "" if there were none.
std::string replacement_table(const RunReport& report);
// A table of the parameter servers, as HTML; "" if the job had none that say it.
std::string server_table(const RunReport& report);

}  // namespace fleet
