#include "viewing/runs/run_history.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/regular_file.h"
#include "base/text.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kLargestFile = int64_t{4} << 30;

class HistoryReader {
 public:
  explicit HistoryReader(RunHistory* into) : all_(*into) {}

  void add(std::string_view line) {
    ++all_.lines;
    const std::optional<JsonObject> event = JsonObject::parse(line);
    if (!event) {
      ++all_.unreadable;
      return;
    }
    note_time(event->number("time"));
    const std::string kind = event->text("event");
    if (kind == "train") return add_train(*event);
    if (kind == "start") return add_start(*event);
    if (kind == "ranks") return add_ranks(*event);
    if (kind == "test") all_.tests.push_back(*event);
    if (kind == "not_finite") all_.not_finite.push_back(*event);
    if (kind == "summary") all_.summary = event;
  }

 private:
  void note_time(double time) {
    if (!std::isfinite(time)) return;
    if (all_.begin == 0) all_.begin = time;
    before_ = all_.end;
    all_.end = std::max(all_.end, time);
    ranks_since_ = ranks_since_ == 0 ? time : ranks_since_;
  }

  // Drops the values of steps that this start makes again.
  void add_start(const JsonObject& event) {
    const double step = event.number("step"), time = event.number("time");
    if (!all_.starts.empty() && std::isfinite(step)) {
      if (std::isfinite(time)) all_.between_starts += std::max(time - before_, 0.0);
      all_.repeated_steps += std::max(last_step_ + 1 - step, 0.0);
      all_.resumes.push_back(step);
      for (auto& [name, points] : all_.train) {
        std::erase_if(points, [&](const CurvePoint& point) { return point.step >= step; });
      }
      std::erase_if(all_.tests, [&](const JsonObject& test) { return test.number("step") > step; });
    }
    ranks_since_ = time;
    all_.summary.reset();
    all_.starts.push_back(event);
  }

  void add_train(const JsonObject& event) {
    const double step = event.number("step");
    if (!std::isfinite(step)) return;
    last_step_ = step;
    event.for_each_number([&](const std::string& name, double value) {
      if (name != "step" && name != "time") all_.train[name].push_back({step, value});
    });
  }

  void add_ranks(const JsonObject& event) {
    RankInterval interval{.begin = ranks_since_,
                          .end = event.number("time"),
                          .batch_time = event.numbers("batch_time"),
                          .data_time = event.numbers("data_time"),
                          .wait_time = event.numbers("wait_time")};
    ranks_since_ = interval.end;
    interval.data_time.resize(interval.batch_time.size(), kNoNumber);
    interval.wait_time.resize(interval.batch_time.size(), kNoNumber);
    if (interval.end > interval.begin) all_.ranks.push_back(std::move(interval));
  }

  RunHistory& all_;
  double last_step_ = -1, ranks_since_ = 0, before_ = 0;
};

constexpr const char* kMarks[] = {"metrics.jsonl", "config.txt", "verdict.json", "profile.txt",
                                  "checkpoints"};

constexpr double kLargestNumber = 1e300;  // differences of larger ones overflow
constexpr size_t kLongestList = 1'000'000;

// Replaces names that JSON lacks, outside of strings.
std::string without_infinities(std::string_view line) {
  std::string text;
  bool quoted = false;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == '"') quoted = !quoted;
    if (quoted && line[i] == '\\' && i + 1 < line.size()) text += line[i++];
    size_t length = 0;
    for (const std::string_view name : {"-Infinity", "Infinity", "NaN"}) {
      if (!quoted && length == 0 && line.substr(i).starts_with(name)) length = name.size();
    }
    if (length > 0) {
      text += "null";
      i += length;
    } else {
      text += line[i++];
    }
  }
  return text;
}

double number_of(const Json& value) {
  if (!value.is_number()) return kNoNumber;
  const double number = value.get<double>();
  return std::abs(number) <= kLargestNumber ? number : kNoNumber;
}

}  // namespace

RunSettings read_run_settings(std::string_view text) {
  RunSettings settings;
  for (const std::string_view line : lines_of(text)) {
    const size_t equals = line.find(" = "), origin = line.rfind("  (");
    if (equals == line.npos || origin == line.npos || origin < equals + 3) continue;
    if (line.back() != ')') continue;
    settings[std::string(line.substr(0, equals))] = {
        std::string(line.substr(equals + 3, origin - equals - 3)),
        std::string(line.substr(origin + 3, line.size() - origin - 4))};
  }
  return settings;
}

RunMetrics metrics_of(const JsonObject& start) {
  RunMetrics metrics;
  if (!start.has("metrics")) return metrics;
  metrics.names = start.texts("metrics");
  metrics.headline = start.text("headline");
  metrics.larger_is_better = start.is_true("larger_is_better");
  metrics.unit = start.text("unit");
  return metrics;
}

std::string label_of_metric(const std::string& name) { return name == "acc1" ? "accuracy" : name; }

bool is_run_folder(const std::string& folder) {
  return std::ranges::any_of(kMarks, [&](const char* name) {
    std::error_code error;
    return fs::exists(fs::path(folder) / name, error);
  });
}

void check_run_folder(const std::string& folder) {
  if (is_run_folder(folder)) return;
  std::error_code error;
  const bool there = fs::is_directory(folder, error);
  throw Error(ErrorCode::kUsage,
              there ? "it is not the folder of a run" : "there is no such folder", folder,
              "give a folder that has metrics.jsonl, such as output/NAME/latest");
}

RunHistory read_run_history(const std::string& folder) {
  RunHistory history;
  history.folder = folder;
  const fs::path root(folder);
  if (fs::exists(root / "config.txt")) {
    history.settings = read_run_settings(read_regular_file(root / "config.txt", 16 << 20));
  }
  if (!fs::exists(root / "metrics.jsonl")) return history;
  const std::string text = read_regular_file(root / "metrics.jsonl", kLargestFile);
  HistoryReader reader(&history);
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    if (end > start) reader.add(std::string_view(text).substr(start, end - start));
    start = end + 1;
  }
  return history;
}

std::optional<JsonObject> JsonObject::parse(std::string_view text) {
  auto value = Json::try_parse(text);
  if (!value) value = Json::try_parse(without_infinities(text));
  if (!value || !value->is_object()) return std::nullopt;
  value->sort_keys();
  return JsonObject(*std::move(value));
}

const Json* JsonObject::list(const std::string& key) const {
  const Json* found = value_->find(key);
  return found && found->is_array() && found->size() <= kLongestList ? found : nullptr;
}

bool JsonObject::has(const std::string& key) const { return value_->find(key) != nullptr; }

double JsonObject::number(const std::string& key) const {
  const Json* found = value_->find(key);
  return found ? number_of(*found) : kNoNumber;
}

std::string JsonObject::text(const std::string& key) const {
  const Json* found = value_->find(key);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

bool JsonObject::is_true(const std::string& key) const {
  const Json* found = value_->find(key);
  return found && found->is_boolean() && found->get<bool>();
}

std::string JsonObject::shown(const std::string& key) const {
  const Json* found = value_->find(key);
  if (!found || found->is_null()) return "-";
  if (found->is_number_float()) return number_text(found->get<double>());
  return found->is_string() ? found->get<std::string>() : found->dump_lossy();
}

std::string JsonObject::json(const std::string& key) const {
  const Json* found = value_->find(key);
  return found ? found->dump_lossy() : std::string();
}

std::optional<JsonObject> JsonObject::object(const std::string& key) const {
  const Json* found = value_->find(key);
  return found && found->is_object() ? std::optional(JsonObject(*found)) : std::nullopt;
}

std::vector<double> JsonObject::numbers(const std::string& key) const {
  std::vector<double> all;
  if (const Json* found = list(key)) {
    for (const Json& value : *found) all.push_back(number_of(value));
  }
  return all;
}

std::vector<std::string> JsonObject::texts(const std::string& key) const {
  std::vector<std::string> all;
  if (const Json* found = list(key)) {
    for (const Json& value : *found) {
      if (value.is_string()) all.push_back(value.get<std::string>());
    }
  }
  return all;
}

std::vector<JsonObject> JsonObject::objects(const std::string& key) const {
  std::vector<JsonObject> all;
  if (const Json* found = list(key)) {
    for (const Json& value : *found) {
      if (value.is_object()) all.push_back(JsonObject(value));
    }
  }
  return all;
}

void JsonObject::for_each_number(
    const std::function<void(const std::string&, double)>& call) const {
  for (const auto& [name, value] : value_->items()) {
    if (value.is_number() || value.is_null()) call(name, number_of(value));
  }
}

}  // namespace fleet
