// Trainers that were started again in their places, in a report: from the job's verdict.
#include "viewing/report/run_report.h"
#include "viewing/runs/curve_chart.h"

namespace fleet {
namespace {

std::string table_row(const std::vector<std::string>& cells, const char* tag) {
  std::string html = "<tr>";
  for (const std::string& text : cells) {
    html += std::string("<") + tag + ">" + escape_markup(text) + "</" + tag + ">";
  }
  return html + "</tr>\n";
}

// "64, and 32 lost", as far as the new process has told it.
std::string samples_text(const JsonObject& replacement) {
  const double lost = replacement.number("lost_samples");
  const std::string again = replacement.shown("repeated_samples");
  if (!(lost > 0)) return again;
  return again + ", and " + replacement.shown("lost_samples") + " lost";
}

}  // namespace

std::string replacement_table(const RunReport& report) {
  if (!report.verdict) return "";
  const std::vector<JsonObject> all = report.verdict->objects("replacements");
  if (all.empty()) return "";
  std::string html =
      "<table>" + table_row({"rank", "replacement", "when", "why", "samples trained again"}, "th");
  for (const JsonObject& one : all) {
    html += table_row({one.shown("rank"), one.shown("replacement"), date_text(one.number("time")),
                       one.text("message"), samples_text(one)},
                      "td");
  }
  return html + "</table>\n";
}

}  // namespace fleet
