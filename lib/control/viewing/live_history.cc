#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "viewing/live_view.h"

namespace fleet {
namespace {

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

}  // namespace

void LiveHistory::add(const LiveReport& report, double now) {
  if (++skipped_ < stride_) return;
  skipped_ = 0;
  Point point{now,      report.has_loss() ? report.loss() : kUnknown, kUnknown,
              kUnknown, report.has_step() ? report.step() : -1,       {}};
  for (const wire::LiveRank& rank : report.ranks()) {
    if (rank.server()) continue;
    const double ms = rank.has_step_ms() ? rank.step_ms() : kUnknown;
    const double peers = rank.has_exposed_share() ? rank.exposed_share() : kUnknown;
    point.ranks.push_back(
        {static_cast<float>(std::isfinite(peers) ? ms * (1 - peers) : ms),
         static_cast<float>(rank.has_input_share() ? 100 * rank.input_share() : kUnknown),
         static_cast<float>(100 * peers),
         static_cast<float>(rank.has_cpu() ? 100 * rank.cpu() : kUnknown)});
    point.step_ms = std::fmax(point.step_ms, ms);
    if (rank.has_samples_per_second()) {
      point.rate = (std::isfinite(point.rate) ? point.rate : 0) + rank.samples_per_second();
    }
  }
  cells_ += point.ranks.size();
  points_.push_back(std::move(point));
  while (full() && points_.size() > 1) thin_out();
}

void LiveHistory::thin_out() {
  size_t kept = 0;
  cells_ = 0;
  for (size_t i = points_.size() % 2 == 0 ? 1 : 0; i < points_.size(); i += 2) {
    cells_ += points_[i].ranks.size();
    if (kept != i) points_[kept] = std::move(points_[i]);
    ++kept;
  }
  points_.resize(kept);
  if (stride_ < 1 << 20) stride_ *= 2;
}

std::string LiveHistory::json() const {
  std::string json = "{\"points\":[";
  for (const Point& point : points_) {
    if (json.back() != '[') json += ",";
    json += "{";
    append_field("time", point.time, "%.1f", &json);
    append_field("step", point.step < 0 ? kUnknown : static_cast<double>(point.step), "%.0f",
                 &json);
    append_field("loss", point.loss, "%.6g", &json);
    append_field("rate", point.rate, "%.6g", &json);
    append_field("step_ms", point.step_ms, "%.5g", &json);
    json += "\"ranks\":[";
    for (const Rank& rank : point.ranks) {
      json += json.back() == '[' ? "[" : ",[";
      append(rank.own_ms, "%.4g", &json);
      for (const float share : {rank.input, rank.peers, rank.cpu}) {
        json += ",";
        append(share, "%.0f", &json);
      }
      json += "]";
    }
    json += "]}";
  }
  return json + "]}";
}

}  // namespace fleet
