#include "viewing/web/page_events.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/json.h"
#include "diagnosis/live_history.h"

namespace fleet {
namespace {

using Point = wire::LiveHistory::Point;
using Ranks = wire::LiveHistory::Ranks;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// A tree of half a million numbers would take 16 times their size.
void append(double value, const char* format, std::string* json) {
  if (!std::isfinite(value)) {
    *json += "null";
    return;
  }
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  *json += text;
}

void append_field(const char* name, double value, const char* format, std::string* json) {
  json->append("\"").append(name).append("\":");
  append(value, format, json);
  *json += ",";
}

double share_of(const std::string& shares, int rank) {
  const auto at = static_cast<size_t>(rank);
  if (at >= shares.size()) return kUnknown;
  const int share = static_cast<unsigned char>(shares[at]);
  return share == LiveHistory::kUnknownShare ? kUnknown : share;
}

// Another process has sent them: the lists may differ in length.
void append_ranks(const Ranks& ranks, std::string* json) {
  *json += "[";
  for (int i = 0; i < ranks.own_ms_size(); ++i) {
    *json += i > 0 ? ",[" : "[";
    append(static_cast<double>(ranks.own_ms(i)), "%.4g", json);
    const double cpu = i < ranks.cpu_size() ? 100.0 * static_cast<double>(ranks.cpu(i)) : kUnknown;
    for (const double share :
         {share_of(ranks.input(), i), share_of(ranks.peers(), i), cpu, share_of(ranks.gpu(), i)}) {
      *json += ",";
      append(share, "%.0f", json);
    }
    *json += "]";
  }
  *json += "]";
}

double step_of(const Point& point) {
  return point.has_step() ? static_cast<double>(point.step()) : kUnknown;
}
double loss_of(const Point& point) { return point.has_loss() ? point.loss() : kUnknown; }
double accuracy_of(const Point& point) {
  return point.has_accuracy() ? point.accuracy() : kUnknown;
}
double evaluated_accuracy_of(const Point& point) {
  return point.has_evaluation_accuracy() ? point.evaluation_accuracy() : kUnknown;
}
double rate_of(const Point& point) {
  return point.has_samples_per_second() ? point.samples_per_second() : kUnknown;
}
double gpu_of(const Point& point) { return point.has_gpu() ? point.gpu() : kUnknown; }

Json failed_rank(const JobOutcome& outcome) {
  if (!outcome.failed) return nullptr;
  return {{"role", outcome.failed->server ? "server" : "trainer"}, {"rank", outcome.failed->rank}};
}

}  // namespace

JobOutcome outcome_of(const JobInfo& job) {
  JobOutcome outcome{.state = state_of(job), .text = failure_text(job.record().verdict())};
  if (job.killed()) outcome.text = "its fleetrun was killed";
  const Verdict& verdict = job.record().verdict().verdict();
  if (verdict.has_exit()) {
    outcome.failed = WatchedLog{.rank = verdict.exit().rank(), .server = verdict.exit().server()};
  } else if (verdict.kind() == Verdict::NODE_LOST && verdict.has_node_rank()) {
    outcome.lost_node = verdict.node_rank();
  }
  return outcome;
}

std::string outcome_event(const JobOutcome& outcome) {
  Json json = {{"state", outcome.state}, {"text", outcome.text}, {"failed", failed_rank(outcome)}};
  json["lost_node"] = outcome.lost_node ? Json(*outcome.lost_node) : Json(nullptr);
  return json.dump_lossy();
}

std::string history_event(const wire::LiveHistory& history, double now) {
  std::string json = "{";
  append_field("interval", static_cast<double>(history.interval_ms()) / 1000, "%.3f", &json);
  json += "\"points\":[";
  for (const Point& point : history.points()) {
    if (json.back() != '[') json += ",";
    json += "{";
    const double ago = static_cast<double>(history.now_ms() - point.at_ms()) / 1000;
    append_field("time", now - ago, "%.1f", &json);
    append_field("step", step_of(point), "%.0f", &json);
    append_field("loss", loss_of(point), "%.6g", &json);
    append_field("accuracy", accuracy_of(point), "%.6g", &json);
    append_field("evaluation_accuracy", evaluated_accuracy_of(point), "%.6g", &json);
    append_field("rate", rate_of(point), "%.6g", &json);
    append_field("step_ms", point.has_step_ms() ? point.step_ms() : kUnknown, "%.5g", &json);
    append_field("gpu", gpu_of(point), "%.4g", &json);
    append_field("gpu_memory", point.has_gpu_memory() ? point.gpu_memory() : kUnknown, "%.4g",
                 &json);
    json += "\"ranks\":";
    if (point.has_ranks()) {
      append_ranks(point.ranks(), &json);
    } else {
      json += "null";
    }
    json += "}";
  }
  return json + "]}";
}

std::string jobs_event(const std::string& host, const std::vector<JobInfo>& jobs) {
  Json list = Json::array();
  for (const JobInfo& job : jobs) {
    const JobRecord& record = job.record();
    const bool ended = job.phase() == JobInfo::ENDED;
    Json one = {{"number", job.number()},     {"job_id", record.job_id()},
                {"state", state_of(job)},     {"ended", ended},
                {"nnodes", record.nnodes()},  {"world_size", record.world_size()},
                {"started", record.started()}};
    if (record.has_progress()) {
      one["step"] = record.progress().step();
      one["target"] = record.progress().target();
      if (record.progress().has_loss()) one["loss"] = record.progress().loss();
      if (!ended && record.progress().has_seconds_left()) {
        one["seconds_left"] = record.progress().seconds_left();
      }
    }
    if (ended) one["failed"] = failed_rank(outcome_of(job));
    list.push_back(std::move(one));
  }
  return Json({{"host", host}, {"jobs", std::move(list)}}).dump_lossy();
}

std::string curves_event(const std::vector<JobCurve>& curves) {
  std::string json = "{\"jobs\":[";
  for (const JobCurve& curve : curves) {
    const auto& points = curve.history->points();
    if (json.back() != '[') json += ",";
    json += "{";
    append_field("number", curve.number, "%.0f", &json);
    json += "\"points\":[";
    const int count = std::min(points.size(), kListPoints);
    for (int k = 0; k < count; ++k) {
      const Point& point = points[count > 1 ? k * (points.size() - 1) / (count - 1) : 0];
      json += k > 0 ? ",[" : "[";
      append(static_cast<double>(point.at_ms()) / 1000, "%.1f", &json);
      for (const double value :
           {loss_of(point), accuracy_of(point), rate_of(point), gpu_of(point)}) {
        json += ",";
        append(value, "%.5g", &json);
      }
      json += "]";
    }
    json += "]}";
  }
  return json + "]}";
}

}  // namespace fleet
