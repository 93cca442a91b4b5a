// What a run of fleet-worker left in its folder: metrics.jsonl, config.txt and others. Any of them
// may be missing, and their lines may be cut off.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewing/runs/json_object.h"

namespace fleet {

// A value that a step recorded; NaN if it was not finite.
struct CurvePoint {
  double step = 0, value = 0;
};
using Points = std::vector<CurvePoint>;

struct RunSetting {
  std::string value;   // as JSON: 0.1, "adam", [1, 2]
  std::string origin;  // "job.json", "--set", "default"; "": unknown
  bool is_default() const { return origin == "default"; }
};
using RunSettings = std::map<std::string, RunSetting>;  // by key

// The lines of config.txt: "KEY = VALUE  (ORIGIN)". Ignores others.
RunSettings read_run_settings(std::string_view text);

// The state of every rank over some steps; the vectors are by rank.
struct RankInterval {
  double begin = 0, end = 0;                             // seconds since 1970
  std::vector<double> batch_time, data_time, wait_time;  // seconds per step
};

struct RunHistory {
  std::string folder;
  RunSettings settings;
  std::vector<JsonObject> starts, tests, not_finite;  // events, in their order
  std::optional<JsonObject> summary;                  // the last one, if no start follows it
  // Of `train` events, by name, without steps that a resumed run repeated.
  std::map<std::string, Points> train;
  std::vector<RankInterval> ranks;
  std::vector<double> resumes;        // steps at which a later start continued
  double begin = 0, end = 0;          // times of the first and the last event; 0: none
  int64_t lines = 0, unreadable = 0;  // of metrics.jsonl
  double repeated_steps = 0;          // that a resumed run made again
  double between_starts = 0;          // seconds from an event to the next start

  bool empty() const { return lines == 0; }
};

// Whether the folder holds a file that a run or a job writes.
bool is_run_folder(const std::string& folder);
// kUsage if it is not a run folder.
void check_run_folder(const std::string& folder);

// Reads metrics.jsonl and config.txt. A folder without them is an empty history. kIo.
RunHistory read_run_history(const std::string& folder);

}  // namespace fleet
