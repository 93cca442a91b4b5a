// Files that a run of fleet-worker left in its folder, or a job whose program reports its steps in
// its log folder: metrics.jsonl, config.txt and others. Any of them may be missing, and their lines
// may be cut off.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace fleet {

// An object of JSON that another program wrote: its values are read if they have the
// expected type. Not modified after its creation; copies share their content.
class JsonObject {
 public:
  // nullopt if the text is not an object. NaN and Infinity, which JSON lacks but Python writes, are
  // null.
  static std::optional<JsonObject> parse(std::string_view text);

  bool has(const std::string& key) const;  // true for null
  // NaN if it is null, absent, not a number or beyond 1e300.
  double number(const std::string& key) const;
  std::string text(const std::string& key) const;  // "" if it is not a text
  bool is_true(const std::string& key) const;
  // Any value, for people (number_text()); "-" if it is null or absent.
  std::string shown(const std::string& key) const;
  std::string json(const std::string& key) const;  // "" if it is absent
  std::optional<JsonObject> object(const std::string& key) const;
  // The elements of a list that have the type; empty if it is not a list. Other elements of numbers
  // are NaN.
  std::vector<double> numbers(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;
  std::vector<JsonObject> objects(const std::string& key) const;
  // Calls it with each member that is a number or null (NaN).
  void for_each_number(const std::function<void(const std::string&, double)>& call) const;

 private:
  explicit JsonObject(Json value) : value_(std::make_shared<const Json>(std::move(value))) {}
  const Json* list(const std::string& key) const;  // nullptr: not a list

  std::shared_ptr<const Json> value_;
};

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

// The metrics that the task of a run declares.
struct RunMetrics {
  std::vector<std::string> names = {"loss", "acc1"};  // keys of `train` and `test` events, in order
  std::string headline = "acc1";                      // shown next to the loss; "": only the loss
  bool larger_is_better = true;                       // the headline
  std::string unit = "samples";                       // key of an evaluation's count
};
// As a `start` event records them; an event without them means an image classification.
RunMetrics metrics_of(const JsonObject& start);
// "accuracy" for "acc1": a metric for people.
std::string label_of_metric(const std::string& name);

// The state of every rank over some steps; the vectors are by rank.
struct RankInterval {
  double begin = 0, end = 0;                             // seconds since 1970
  std::vector<double> batch_time, data_time, wait_time;  // seconds per step
};

struct RunHistory {
  std::string folder;
  RunSettings settings;
  std::vector<JsonObject> starts, tests, not_finite;  // events, in order
  std::optional<JsonObject> summary;                  // the last one, if no start follows it
  // Of `train` events, by name, without steps that a resumed run repeated.
  std::map<std::string, Points> train;
  std::vector<RankInterval> ranks;
  std::vector<double> resumes;        // steps at which a later start continued
  double begin = 0, end = 0;          // times of the first and the last event; 0: none
  int64_t lines = 0, unreadable = 0;  // in metrics.jsonl
  double repeated_steps = 0;          // that a resumed run made again
  double between_starts = 0;          // seconds from an event to the next start

  bool empty() const { return lines == 0; }
  RunMetrics metrics() const { return starts.empty() ? RunMetrics() : metrics_of(starts.back()); }
  // Whether a program of the user has reported it, on this folder of logs.
  bool is_reported() const { return !starts.empty() && starts.back().is_true("reported"); }
};

// Whether the folder holds a file that a run or a job writes.
bool is_run_folder(const std::string& folder);
// kUsage if it is not a run folder.
void check_run_folder(const std::string& folder);

// Reads metrics.jsonl and config.txt. A folder without them is an empty history. kIo.
RunHistory read_run_history(const std::string& folder);

}  // namespace fleet
