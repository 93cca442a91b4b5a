#include "node/reported_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"

namespace fleet {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostSteps = 1e15;       // a double counts them exactly
constexpr double kLargestNumber = 1e300;  // readers of metrics.jsonl refuse larger ones
constexpr double kMostSeconds = 1e6;      // duration of a step
constexpr size_t kMostValues = 100, kLongestName = 100;
constexpr size_t kRecentWaits = 8;  // as in StepTotals
constexpr double kNs = 1e9;

// Names of metrics.jsonl itself.
bool is_reserved(std::string_view name) { return name == "event" || name == "time"; }

// A report is flat, perhaps within another object. What the program adds may have one more level.
void check_depth(JsonEvent, int depth, const std::string&) {
  if (depth > 3) throw JsonError("nested too deeply");
}

// Sums of any reports fit.
int64_t sum_of(int64_t sum, double more) {
  constexpr double kMostSum = 1e18;
  return static_cast<int64_t>(std::min(static_cast<double>(sum) + more, kMostSum));
}

class Reader {
 public:
  explicit Reader(std::string* why) : why_(*why) {}

  std::optional<ReportedStep> read(const Json& object) {
    ReportedStep report;
    bool has_step = false;
    if (object.size() > kMostValues) return fail("it has more than 100 values");
    const Json* value = object.begin();
    for (const std::string& name : object.keys()) {
      if (!add(name, *value++, &report, &has_step)) return std::nullopt;
    }
    if (!has_step) return fail("it has no \"step\"");
    return report;
  }
  std::nullopt_t fail(std::string why) {
    why_ = std::move(why);
    return std::nullopt;
  }

 private:
  bool add(const std::string& name, const Json& value, ReportedStep* report, bool* has_step) {
    if (name == "step") {
      *has_step = !value.is_null();
      return count(name, value, &report->step);
    }
    if (name == "steps") return count(name, value, &report->steps);
    if (name == "epoch") return number(name, value, kMostSteps, &report->epoch);
    if (name == "samples") return number(name, value, kMostSteps, &report->samples);
    if (name == "batch_time") return number(name, value, kMostSeconds, &report->batch_time);
    if (name == "data_time") return number(name, value, kMostSeconds, &report->data_time);
    if (name == "wait_time") return number(name, value, kMostSeconds, &report->wait_time);
    if (name == "loss") {
      report->loss = kNoNumber;
      return any_number(name, value, &*report->loss);
    }
    const bool is_number = value.is_number() || value.is_null();
    if (!is_number || is_reserved(name)) return true;  // a remark of the program
    if (name.size() > kLongestName) return refuse(name.substr(0, kLongestName), "is too long");
    report->others.emplace_back(name, kNoNumber);
    return any_number(name, value, &report->others.back().second);
  }

  // null leaves each of these as it is.
  bool count(const std::string& name, const Json& value, int64_t* to) {
    if (value.is_null()) return true;
    const double given = value.is_number() ? value.get<double>() : kNoNumber;
    if (!(given >= 0 && given <= kMostSteps && given == std::floor(given))) {
      return refuse(name, "is not a number of steps");
    }
    *to = static_cast<int64_t>(given);
    return true;
  }
  bool number(const std::string& name, const Json& value, double most, std::optional<double>* to) {
    if (value.is_null()) return true;
    const double given = value.is_number() ? value.get<double>() : kNoNumber;
    if (!(given >= 0 && given <= most)) return refuse(name, "is out of range");
    *to = given;
    return true;
  }
  bool any_number(const std::string& name, const Json& value, double* to) {
    if (value.is_null()) return true;
    const double given = value.is_number() ? value.get<double>() : kNoNumber;
    if (!(std::abs(given) <= kLargestNumber)) return refuse(name, "is not a number");
    *to = given;
    return true;
  }
  bool refuse(const std::string& name, const char* why) {
    why_ = "\"" + name + "\" " + why;
    return false;
  }

  std::string& why_;
};

}  // namespace

std::optional<ReportedStep> parse_reported_step(std::string_view object, std::string* why) {
  Reader reader(why);
  try {
    const Json all = Json::parse(object, check_depth);
    if (!all.is_object()) return reader.fail("it is not an object of JSON");
    const Json* within = all.find("fleetrun");
    if (within && !within->is_object()) return reader.fail("\"fleetrun\" is not an object");
    return reader.read(within ? *within : all);
  } catch (const JsonError&) {
    return reader.fail("it is not JSON, which has no NaN and no Infinity, or it is nested");
  }
}

void ReportedSteps::add(const ReportedStep& report, int64_t at_ns) {
  const bool first = !progress_;
  if (first) progress_.emplace();
  RankProgress& now = *progress_;
  const int64_t steps = first ? 1 : std::max<int64_t>(report.step - now.step, 0);
  if (!first && steps > 0) {
    const int64_t passed = std::max<int64_t>(at_ns - now.step_at_ns, 0);
    add_times(report, static_cast<double>(steps), static_cast<double>(passed));
  }
  if (first || report.step != now.step) now.step_at_ns = at_ns;
  if (first) now.first_step_at_ns = at_ns;
  ++now.ticks;
  now.steps = first ? 1 : sum_of(now.steps, static_cast<double>(steps));
  now.step = report.step;
  if (report.steps > 0) now.target = report.steps;
  if (report.epoch) now.epoch = static_cast<int64_t>(*report.epoch);
  if (report.loss && std::isfinite(*report.loss)) {
    ++now.losses;
    now.loss = *report.loss;
  }
  for (const auto& [name, value] : report.others) {
    if (!(value >= 0 && value <= 1)) continue;
    if (name == "accuracy") now.accuracy = value;
    if (name == "evaluation_accuracy") now.evaluation_accuracy = value;
  }
  if (report.samples) {
    const double more = *report.samples - samples_.value_or(*report.samples);
    now.totals.samples = sum_of(now.totals.samples, std::max(more, 0.0));
    samples_ = report.samples;
  }
}

void ReportedSteps::add_times(const ReportedStep& report, double steps, double passed) {
  RankProgress& now = *progress_;
  passed_ += passed;
  if (passed_ == 0) return;  // these came together with the first one
  time_ += report.batch_time ? kNs * *report.batch_time * steps : passed;
  input_ += kNs * report.data_time.value_or(0) * steps;
  if (report.wait_time) {
    recent_waits_.push_back(kNs * *report.wait_time);
    if (recent_waits_.size() > kRecentWaits) recent_waits_.pop_front();
    waited_ += recent_waits_.back() * steps;
    exchange_ += *std::ranges::min_element(recent_waits_) * steps;
  }
  const auto within = [](double sum, double whole) { return std::llround(std::min(sum, whole)); };
  now.totals.time = within(time_, passed_);
  const auto whole = static_cast<double>(now.totals.time);
  now.totals.input = within(input_, whole);
  if (recent_waits_.empty()) return;
  now.totals.waited = now.totals.exposed = within(waited_, whole);
  now.totals.exchange = within(exchange_, static_cast<double>(now.totals.exposed));
}

}  // namespace fleet
