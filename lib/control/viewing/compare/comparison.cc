#include "viewing/compare/comparison.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/regular_file.h"

namespace fleet {
namespace {

constexpr const char* kNames[] = {"train.seed", "train.name", "train.output"};

bool names_a_run(const std::string& key) {
  return std::ranges::any_of(kNames, [&](const char* name) { return key == name; });
}

// The keys that do not have the same value in all runs.
std::vector<std::string> differing_keys(const std::vector<RunSummary>& runs) {
  std::map<std::string, std::pair<const std::string*, size_t>> seen;  // first value, runs with it
  for (const RunSummary& run : runs) {
    for (const auto& [key, setting] : run.settings) {
      if (names_a_run(key)) continue;
      auto& [value, count] = seen.try_emplace(key, &setting.value, 0).first->second;
      if (*value == setting.value) ++count;
    }
  }
  std::vector<std::string> keys;
  for (const auto& [key, of] : seen) {
    if (of.second != runs.size()) keys.push_back(key);
  }
  return keys;
}

std::vector<std::string> values_of(const RunSummary& run, const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  for (const std::string& key : keys) {
    const auto found = run.settings.find(key);
    values.push_back(found == run.settings.end() ? std::string() : found->second.value);
  }
  return values;
}

namespace fs = std::filesystem;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kTrain = R"({"event":"train")";
constexpr std::string_view kRanks = R"({"event":"ranks")";
constexpr size_t kBlock = 256 << 10;  // fits a core's cache
constexpr size_t kLongestLine = 64 << 20;

// The keys of the start event that stand for settings, for a run without config.txt.
constexpr const char* kStartKeys[][2] = {{"model", "model.name"},
                                         {"ranks", "ranks"},
                                         {"device", "device"},
                                         {"precision", "precision"},
                                         {"global_batch", "global_batch"},
                                         {"seed", "train.seed"}};

// Passes whole lines on; the last one may lack its newline.
void read_lines(const std::string& path, SummaryReader* reader) {
  const RegularFile file = open_regular_file(path);
  thread_local std::vector<char> buffer;  // reused by all files of a thread
  if (buffer.size() < kBlock) buffer.resize(kBlock);
  size_t kept = 0;  // bytes of an unfinished line
  for (;;) {
    if (kept == buffer.size()) {
      if (kept >= kLongestLine) throw Error(ErrorCode::kUsage, "a line is too long", path);
      buffer.resize(buffer.size() * 2);
    }
    const ssize_t n = ::read(file.fd.get(), buffer.data() + kept, buffer.size() - kept);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("cannot be read", path);
    const std::string_view all(buffer.data(), kept + static_cast<size_t>(n));
    const size_t newline = all.rfind('\n');
    const size_t whole = n == 0 ? all.size() : newline == all.npos ? 0 : newline + 1;
    reader->add(all.substr(0, whole));
    if (n == 0) return;
    kept = all.size() - whole;
    std::memmove(buffer.data(), buffer.data() + whole, kept);
  }
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  double sum = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++spread.count;
  }
  spread.mean = spread.count > 0 ? sum / spread.count : NAN;
  if (spread.count < 2) return spread;
  double squares = 0;
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - spread.mean) * (value - spread.mean);
  }
  spread.deviation = std::sqrt(squares / (spread.count - 1));
  return spread;
}

Comparison compare_runs(std::vector<RunSummary> runs) {
  Comparison all;
  all.runs = std::move(runs);
  all.differing = differing_keys(all.runs);
  std::map<std::vector<std::string>, size_t> index;
  for (size_t k = 0; k < all.runs.size(); ++k) {
    std::vector<std::string> values = values_of(all.runs[k], all.differing);
    const std::string& headline = all.runs[k].metrics.headline;
    std::vector<std::string> kind = values;
    kind.push_back(headline);
    const auto [found, is_new] = index.emplace(std::move(kind), all.groups.size());
    if (is_new) all.groups.push_back({.headline = headline, .values = std::move(values)});
    all.groups[found->second].runs.push_back(k);
  }
  for (RunGroup& group : all.groups) {
    for (const RunValue& value : kRunValues) {
      std::vector<double> values;
      for (const size_t run : group.runs) values.push_back(all.runs[run].*value.of_run);
      group.*value.of_group = spread_of(values);
    }
  }
  return all;
}

SummaryReader::SummaryReader(std::optional<double> target, RunSummary* into)
    : target_(target),
      all_(*into),
      begin_(kNone),
      end_(kNone),
      tested_loss_(kNone),
      tested_headline_(kNone) {
  for (const RunValue& value : kRunValues) all_.*value.of_run = kNone;
}

void SummaryReader::add(std::string_view lines) {
  const char *at = lines.data(), *const end = at + lines.size();
  std::string_view train;
  while (at < end) {
    const void* found = std::memchr(at, '\n', static_cast<size_t>(end - at));
    const char* stop = found ? static_cast<const char*>(found) : end;
    const std::string_view line(at, static_cast<size_t>(stop - at));
    at = stop + 1;
    if (line.starts_with(kTrain)) {
      if (line.back() == '}') train = line;  // a crash may have cut it off
    } else if (!line.starts_with(kRanks) && !line.empty()) {
      take(line);
    }
  }
  if (!train.empty()) last_train_ = train;
}

void SummaryReader::note_time(const JsonObject& event) {
  const double time = event.number("time");
  begin_ = std::fmin(begin_, time);
  end_ = std::fmax(end_, time);
}

void SummaryReader::take(std::string_view line) {
  const std::optional<JsonObject> parsed = JsonObject::parse(line);
  if (!parsed) return;
  const JsonObject& event = *parsed;
  note_time(event);
  const std::string kind = event.text("event");
  if (kind == "start") {
    take_start(event);
  } else if (kind == "test") {
    take_test(event);
  } else if (kind == "train") {  // written by another program, with blanks
    last_train_ = line;
  } else if (kind == "summary") {
    all_.complete = !event.is_true("stopped");
    all_.steps = event.number("steps");
    all_.speed = event.number("speed");
  }
}

void SummaryReader::take_start(const JsonObject& event) {
  all_.complete = false;
  all_.steps = all_.speed = kNone;
  all_.metrics = metrics_of(event);
  if (!all_.settings.empty()) return;
  for (const auto& [key, setting] : kStartKeys) {
    if (event.has(key)) all_.settings[setting].value = event.json(key);
  }
}

void SummaryReader::take_test(const JsonObject& event) {
  tested_loss_ = event.number("loss");
  const bool larger = all_.metrics.larger_is_better;
  const double value = event.number(all_.metrics.headline);
  tested_headline_ = value;
  all_.best_headline =
      larger ? std::fmax(all_.best_headline, value) : std::fmin(all_.best_headline, value);
  if (!target_ || std::isfinite(all_.target_steps)) return;
  if (!(larger ? value >= *target_ : value <= *target_)) return;
  all_.target_steps = event.number("step");
  all_.target_seconds = event.number("time") - begin_;
}

void SummaryReader::finish() {
  const bool tested = std::isfinite(tested_loss_) || std::isfinite(tested_headline_);
  if (tested) all_.loss = tested_loss_, all_.headline = tested_headline_;
  if (const std::optional<JsonObject> train = JsonObject::parse(last_train_)) {
    note_time(*train);
    if (std::isnan(all_.steps)) all_.steps = train->number("step") + 1;
    if (std::isnan(all_.speed)) all_.speed = train->number("speed");
    if (!tested) {
      all_.loss = train->number("loss");
      all_.headline = train->number(all_.metrics.headline);
    }
  }
  all_.seconds = end_ - begin_;
  const auto seed = all_.settings.find("train.seed");
  if (seed != all_.settings.end()) all_.seed = seed->second.value;
}

RunSummary read_run_summary(const std::string& folder, std::optional<double> target) {
  check_run_folder(folder);
  RunSummary summary;
  summary.folder = folder;
  const fs::path root(folder);
  if (fs::exists(root / "config.txt")) {
    summary.settings = read_run_settings(read_regular_file(root / "config.txt", 16 << 20));
  }
  SummaryReader reader(target, &summary);
  if (fs::exists(root / "metrics.jsonl")) read_lines(root / "metrics.jsonl", &reader);
  reader.finish();
  return summary;
}

}  // namespace fleet
