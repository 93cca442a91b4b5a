// Groups of runs that differ only in their seed, and their means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewing/runs/run_history.h"

namespace fleet {

// The result of a run, from as few lines of its metrics.jsonl as possible.
struct RunSummary {
  std::string folder;
  RunSettings settings;
  std::string seed;  // train.seed, as JSON; "": unknown
  RunMetrics metrics;
  // NaN: none. Of the last evaluation, else of the last training step.
  double loss = 0, headline = 0;
  double best_headline = 0;   // over all evaluations
  double steps = 0;           // the last step that was recorded, plus one
  double speed = 0;           // samples per second and rank
  double seconds = 0;         // from the first event to the last
  double target_seconds = 0;  // from the first event to the first evaluation that reaches it
  double target_steps = 0;
  bool complete = false;  // it ended normally
};

// Collects the events of a metrics.jsonl. Lines of kind "train", nearly all, are skipped without
// being parsed, except the last.
class SummaryReader {
 public:
  // target: value of the headline to reach; nullopt: none.
  SummaryReader(std::optional<double> target, RunSummary* into);
  // A part of the file: whole lines.
  void add(std::string_view lines);
  void finish();

 private:
  void take(std::string_view line);
  void take_start(const JsonObject& event);
  void take_test(const JsonObject& event);
  void note_time(const JsonObject& event);

  const std::optional<double> target_;
  RunSummary& all_;
  std::string last_train_;
  double begin_, end_;
  double tested_loss_, tested_headline_;
};

// Reads the run's metrics.jsonl and config.txt. kUsage if it is not a run folder, kIo.
RunSummary read_run_summary(const std::string& folder, std::optional<double> target);

// Mean and spread of the values that are finite.
struct Spread {
  double mean = 0, deviation = 0;  // NaN without a value; the sample's deviation, 0 of one value
  int count = 0;
};
Spread spread_of(const std::vector<double>& values);

struct RunGroup {
  std::vector<size_t> runs;         // indices, in the given order
  std::string headline;             // the runs' common one; "": only the loss
  std::vector<std::string> values;  // of Comparison::differing, as JSON; "": not set
  Spread loss, of_headline, best, steps, speed, seconds, target_seconds, target_steps;
};

// The values of a run, and their spread in a group, by the names that programs see.
struct RunValue {
  const char* name;  // prefix of the headline's name
  double RunSummary::*of_run;
  Spread RunGroup::*of_group;
  enum class Kind { kPlain, kHeadline, kTarget } kind = Kind::kPlain;  // kTarget: only with one
};
inline constexpr RunValue kRunValues[] = {
    {"loss", &RunSummary::loss, &RunGroup::loss},
    {"", &RunSummary::headline, &RunGroup::of_headline, RunValue::Kind::kHeadline},
    {"best_", &RunSummary::best_headline, &RunGroup::best, RunValue::Kind::kHeadline},
    {"steps", &RunSummary::steps, &RunGroup::steps},
    {"speed", &RunSummary::speed, &RunGroup::speed},
    {"seconds", &RunSummary::seconds, &RunGroup::seconds},
    {"target_seconds", &RunSummary::target_seconds, &RunGroup::target_seconds,
     RunValue::Kind::kTarget},
    {"target_steps", &RunSummary::target_steps, &RunGroup::target_steps, RunValue::Kind::kTarget}};

struct Comparison {
  std::vector<RunSummary> runs;
  std::vector<std::string> differing;  // keys whose values differ between groups, sorted
  std::vector<RunGroup> groups;        // in the order of their first runs
};

// train.seed, train.name and train.output, which name a run, make no difference. Runs of a group
// have the same headline.
Comparison compare_runs(std::vector<RunSummary> runs);

struct ComparisonOptions {
  std::string target;  // as given; "": none
  size_t width = 80;   // columns
};
std::string comparison_text(const Comparison& all, const ComparisonOptions& options);
std::string comparison_json(const Comparison& all, const ComparisonOptions& options);

}  // namespace fleet
