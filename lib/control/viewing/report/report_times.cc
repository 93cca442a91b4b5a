// Times of a run, as texts and as a part of the report's page.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <iterator>

#include "base/number_text.h"
#include "viewing/report/report_parts.h"
#include "viewing/runs/curve_chart.h"

namespace fleet {
namespace {

constexpr const char* kBarColours[] = {"#8250df", "#2a6fdb", "#d9730d", "#b8bfc6",
                                       "#57ab5a", "#bf8700", "#cf222e"};

constexpr size_t kMaxText = 64 << 10;

// How the ranks spent their steps: the share of waiting for each other, over all intervals.
double waiting_share(const RunHistory& run) {
  double waited = 0, whole = 0;
  for (const RankInterval& interval : run.ranks) {
    for (size_t r = 0; r < interval.batch_time.size(); ++r) {
      if (!std::isfinite(interval.wait_time[r]) || !(interval.batch_time[r] > 0)) continue;
      const double seconds = interval.end - interval.begin;
      waited += seconds * std::min(interval.wait_time[r] / interval.batch_time[r], 1.0);
      whole += seconds;
    }
  }
  return whole > 0 ? waited / whole : 0;
}

}  // namespace

std::string preformatted(const std::string& text) {
  const bool cut = text.size() > kMaxText;
  return "<pre>" + escape_markup(cut ? text.substr(0, kMaxText) + "\n... cut off" : text) +
         "</pre>\n";
}

double mean_of_curve(const RunHistory& run, const char* name) {
  const auto found = run.train.find(name);
  if (found == run.train.end()) return NAN;
  double sum = 0, count = 0;
  for (const CurvePoint& point : found->second) {
    if (!std::isfinite(point.value)) continue;
    sum += point.value;
    ++count;
  }
  return count > 0 ? sum / count : NAN;
}

std::string date_text(double unix_time) {
  if (!(unix_time > 0) || unix_time > 1e11) return "-";
  const auto seconds = static_cast<std::time_t>(unix_time);
  std::tm local = {};
  char text[64] = "";
  if (::localtime_r(&seconds, &local)) {
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  }
  return text;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 60) return format_printf("%.*f s", seconds < 10 ? 2 : 1, seconds);
  if (seconds < 3600) {
    return format_printf("%d min %02d s", static_cast<int>(seconds / 60),
                         static_cast<int>(std::fmod(seconds, 60)));
  }
  return format_printf("%.0f h %02d min", std::floor(seconds / 3600),
                       static_cast<int>(std::fmod(seconds, 3600) / 60));
}

std::vector<TimePart> time_parts(const RunReport& report) {
  const RunHistory& run = report.run;
  const bool summed_up = run.summary && run.starts.size() <= 1;
  const auto of_summary = [&](const char* key) {
    const double seconds = summed_up ? run.summary->number(key) : NAN;
    return std::isfinite(seconds) ? std::max(seconds, 0.0) : 0;
  };
  double start = of_summary("start_seconds"), saving = of_summary("saving_seconds");
  double evaluation = of_summary("evaluation_seconds"), training = of_summary("training_seconds");
  double between = 0;
  if (!summed_up) {
    for (const JsonObject& test : run.tests) evaluation += std::fmax(test.number("seconds"), 0);
    between = run.between_starts;
    training = std::max(run.end - run.begin - evaluation - between, 0.0);
  }
  const double step = mean_of_curve(run, "batch_time"), data = mean_of_curve(run, "data_time");
  const double reads = step > 0 && data > 0 ? std::min(data / step, 1.0) : 0;
  const double waits = std::min(waiting_share(run), 1 - reads);
  std::vector<TimePart> parts = {
      {"start", start},
      {"training: computing and the rest", training * (1 - reads - waits)},
      {"training: waiting for data", training * reads},
      {"training: waiting for other ranks", training * waits},
      {"evaluation", evaluation},
      {"saving checkpoints", saving},
      {"between two starts", between}};
  std::erase_if(parts, [](const TimePart& part) { return !(part.seconds > 0); });
  return parts;
}

std::string times_part(const RunReport& report) {
  const std::vector<TimePart> parts = time_parts(report);
  double total = 0;
  for (const TimePart& part : parts) total += part.seconds;
  const auto bottleneck = report.verdict ? report.verdict->object("bottleneck") : std::nullopt;
  const std::string line = bottleneck ? bottleneck->text("line") : "";
  std::string html;
  if (!line.empty()) html += "<p>" + escape_markup(line) + "</p>\n";
  if (total > 0) {
    html += "<div class=\"bar\">";
    for (size_t k = 0; k < parts.size(); ++k) {
      html +=
          format_printf("<div style=\"width:%.2f%%;background:%s\" title=\"",
                        100 * parts[k].seconds / total, kBarColours[k % std::size(kBarColours)]) +
          escape_markup(parts[k].name) + "\"></div>";
    }
    html += "</div>\n<table>";
    for (size_t k = 0; k < parts.size(); ++k) {
      html += std::string("<tr><td><span style=\"color:") +
              kBarColours[k % std::size(kBarColours)] + "\">&#9632;</span> " +
              escape_markup(parts[k].name) + "</td><td class=\"number\">" +
              escape_markup(duration_text(parts[k].seconds)) + "</td><td class=\"number\">" +
              format_printf("%.1f %%", 100 * parts[k].seconds / total) + "</td></tr>\n";
    }
    html += "</table>\n";
  }
  if (!report.profile.empty()) {
    html += "<details open><summary>time per kind of operation</summary>" +
            preformatted(report.profile) + "</details>\n";
  }
  return html;
}

}  // namespace fleet
