#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <iterator>

#include "base/number_text.h"
#include "launch/planning/addresses.h"
#include "viewing/report/evaluation_tables.h"
#include "viewing/report/run_report.h"
#include "viewing/runs/curve_chart.h"

namespace fleet {
namespace {

constexpr char kStyle[] = R"(
:root{color-scheme:light dark}
body{margin:0 auto;max-width:1000px;padding:16px;font:14px/1.45 system-ui,sans-serif;background:#fff;color:#1f2328}
h1{font-size:22px;margin:8px 0;overflow-wrap:anywhere}h2{font-size:17px;margin:28px 0 8px;border-bottom:1px solid #d8dee4;padding-bottom:4px}
table{border-collapse:collapse;max-width:100%}td,th{text-align:left;padding:3px 14px 3px 0;vertical-align:top;overflow-wrap:anywhere}
th{font-weight:600;color:#656d76;overflow-wrap:normal;white-space:nowrap}.short{white-space:nowrap}li,summary{overflow-wrap:anywhere}td.number,th.number{text-align:right}
pre{background:#f6f8fa;padding:10px;overflow:auto;max-height:480px;border-radius:6px;font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere}
.facts{display:flex;flex-wrap:wrap;gap:6px 28px;padding:0;margin:8px 0}.facts div{min-width:80px}
.facts span{display:block;color:#656d76;font-size:12px}.facts b{font-size:16px;font-weight:600;overflow-wrap:anywhere}
.charts{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr))}.charts svg{width:100%;max-width:600px;overflow:visible}
.good{color:#1a7f37}.bad{color:#cf222e}.dim{color:#656d76}.default td{color:#656d76}
svg{max-width:100%;height:auto;display:block}summary{cursor:pointer;margin:8px 0}
.bar{display:flex;height:22px;border-radius:4px;overflow:hidden;margin:8px 0}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}h2{border-color:#30363d}
pre{background:#161b22}.chart text{fill:#e6edf3}.chart .unit,.chart .label{fill:#8d96a0}.chart .grid{stroke:#30363d}
.chart .line0{stroke:#6ea8fe}.chart .line1{stroke:#f0883e}}
@media(max-width:500px){body{padding:10px}td,th{padding-right:8px;font-size:12px}.charts .chart{font-size:16px}.charts .chart .title{font-size:18px}}
@media print{pre{max-height:none}}
)";
constexpr const char* kBarColours[] = {"#8250df", "#2a6fdb", "#d9730d", "#b8bfc6",
                                       "#57ab5a", "#bf8700", "#cf222e"};

// A longer text may break anywhere, so that the table fits a phone.
constexpr size_t kShortCell = 10;
// Of one table, list or text.
constexpr size_t kMaxRows = 300, kMaxText = 64 << 10;

std::string e(std::string_view text) { return escape_markup(text); }

std::string loss_text(double loss) {
  return std::isfinite(loss) ? number_text(loss) : "not finite";
}

std::string preformatted(const std::string& text) {
  const bool cut = text.size() > kMaxText;
  return "<pre>" + e(cut ? text.substr(0, kMaxText) + "\n... cut off" : text) + "</pre>\n";
}

std::string row(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string html = "<tr>";
  for (const std::string& cell : cells) {
    const char* kind = cell.size() <= kShortCell ? " class=\"short\">" : ">";
    html += std::string("<") + tag + kind + e(cell) + "</" + tag + ">";
  }
  return html + "</tr>\n";
}

double last_value(const RunHistory& run, const char* name) {
  const auto found = run.train.find(name);
  return found == run.train.end() || found->second.empty() ? NAN : found->second.back().value;
}

double mean_of(const RunHistory& run, const char* name) {
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

// The best value of the headline in an evaluation.
double best_value(const RunHistory& run, const RunMetrics& metrics) {
  double best = NAN;
  for (const JsonObject& test : run.tests) {
    const double value = test.number(metrics.headline);
    best = metrics.larger_is_better ? std::fmax(best, value) : std::fmin(best, value);
  }
  return best;
}

class Page {
 public:
  explicit Page(const RunReport& report)
      : report_(report), run_(report.run), metrics_(report.run.metrics()) {}

  std::string html() {
    const std::string name = std::filesystem::path(run_.folder).lexically_normal().string();
    html_ =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; img-src data:; script-src '" +
        std::string(sorting_script_hash()) +
        "'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>" + e(name) +
        "</title>\n<style>" + curve_chart_style() + rank_timeline_style() + kStyle +
        evaluation_style() + "</style></head><body>\n<h1>" + e(name) + "</h1>\n";
    add_state();
    add_facts();
    add_verdict();
    add_replacements();
    add_curves();
    add_evaluations();
    add_classes(report_.evaluation, "Classes");
    add_classes(report_.evaluation_only, "Classes, evaluated without training");
    add_timeline();
    add_servers();
    add_times();
    add_warnings();
    add_settings();
    if (report_.evaluation || report_.evaluation_only) {
      html_ += std::string("<script>") + sorting_script() + "</script>\n";
    }
    return html_ + "</body></html>\n";
  }

 private:
  bool failed() const { return report_.verdict && report_.verdict->number("exit_code") != 0; }
  void heading(const char* text) { html_ += std::string("<h2>") + text + "</h2>\n"; }

  void add_state() {
    std::string state, kind = "bad";
    if (failed()) {
      const JsonObject& verdict = *report_.verdict;
      state = verdict.shown("verdict") + ", exit code " + verdict.shown("exit_code");
    } else if (run_.summary) {
      const bool stopped = run_.summary->is_true("stopped");
      state = stopped ? "stopped as asked" : "completed";
      kind = stopped ? "dim" : "good";
    } else if (report_.running) {
      state = "running";
      kind = "dim";
    } else if (!run_.empty() && !report_.host.empty() && report_.host != host_name()) {
      state = "no summary: it runs on " + report_.host + ", or crashed or was killed there";
    } else if (!run_.empty()) {
      state = "ended without a summary: it crashed or was killed";
    } else {
      state = "no metrics";
      kind = "dim";
    }
    html_ += "<p class=\"" + kind + "\"><b>" + e(state) + "</b></p>\n";
  }

  void fact(const std::string& name, const std::string& value) {
    if (value.empty() || value == "-" || value == "nan") return;
    html_ += "<div><span>" + e(name) + "</span><b>" + e(value) + "</b></div>\n";
  }

  void add_facts() {
    html_ += "<div class=\"facts\">\n";
    if (!run_.starts.empty()) {
      const JsonObject& start = run_.starts.back();
      for (const char* key : {"model", "ranks", "device", "precision", "global_batch", "seed"}) {
        std::string name = key;
        std::ranges::replace(name, '_', ' ');
        fact(name, start.shown(key));
      }
    }
    fact("started", date_text(run_.begin));
    if (run_.end > run_.begin) fact("duration", duration_text(run_.end - run_.begin));
    fact("starts", run_.starts.size() > 1 ? std::to_string(run_.starts.size()) : "");
    if (!run_.train.empty()) fact("last loss", loss_text(last_value(run_, "loss")));
    if (!run_.tests.empty() && !metrics_.headline.empty()) {
      const std::string label = label_of_metric(metrics_.headline);
      fact("final " + label, run_.tests.back().shown(metrics_.headline));
      fact("best " + label, number_text(best_value(run_, metrics_)));
    }
    const double steps = run_.summary ? run_.summary->number("steps") : NAN;
    if (std::isfinite(steps)) fact("steps", number_text(steps));
    const double speed = run_.summary ? run_.summary->number("speed") : mean_of(run_, "speed");
    if (std::isfinite(speed)) fact("samples/s and rank", number_text(std::round(speed * 10) / 10));
    html_ += "</div>\n";
  }

  void add_verdict() {
    if (failed()) {
      heading("Verdict");
      const std::string text = report_.verdict->text("text");
      html_ += preformatted(text.empty() ? report_.verdict->shown("message") : text);
      add_generations();
      add_last_lines();
    }
    // `fleetrun stacks` also leaves files in a run that ends well.
    const bool ended_well = run_.summary && !failed();
    if (report_.stacks.empty() || ended_well) return;
    if (!failed()) heading("Stacks");
    for (const StackFile& stack : report_.stacks) {
      html_ += "<details><summary>stack: " + e(stack.name) + "</summary>" +
               preformatted(stack.text) + "</details>\n";
    }
  }

  void add_generations() {
    const std::vector<JsonObject> generations = report_.verdict->objects("generations");
    if (generations.empty()) return;
    html_ += "<table>" + row({"generation", "verdict", "ran for", "step", "message"}, "th");
    size_t rows = 0;
    for (const JsonObject& generation : generations) {
      if (++rows > kMaxRows) break;
      html_ += row({generation.shown("generation"), generation.shown("verdict"),
                    duration_text(generation.number("ran_for")), generation.shown("step"),
                    generation.shown("message")});
    }
    html_ += "</table>\n";
  }

  void add_last_lines() {
    const std::optional<JsonObject> rank = report_.verdict->object("rank");
    if (!rank) return;
    std::string text;
    for (const std::string& line : rank->texts("last_lines")) text += line + "\n";
    if (text.empty()) return;
    const std::string role = rank->text("role") == "server" ? "server " : "rank ";
    html_ += "<details open><summary>last lines of " + role + e(rank->shown("rank")) + ", " +
             e(rank->shown("log")) + "</summary>" + preformatted(text) + "</details>\n";
  }

  void add_curves() {
    const std::vector<CurveChart> charts = charts_of(run_);
    if (charts.empty()) return;
    heading("Curves");
    html_ += curve_charts_html(charts);
    if (!run_.resumes.empty()) {
      html_ += "<p class=\"dim\">Dashed lines: the run resumed there; " +
               number_text(run_.repeated_steps) + " steps were made again.</p>\n";
    }
  }

  void add_evaluations() {
    if (run_.tests.empty()) return;
    heading("Evaluations");
    const bool many = run_.tests.size() > 12;
    if (many) {
      html_ +=
          "<details><summary>" + std::to_string(run_.tests.size()) + " evaluations</summary>\n";
    }
    std::vector<std::string> columns = {"step", "epoch", metrics_.unit};
    std::ranges::copy(metrics_.names, std::back_inserter(columns));
    columns.emplace_back("seconds");
    html_ += "<div class=\"scroll\"><table>" + row(columns, "th");
    const size_t first = run_.tests.size() > kMaxRows ? run_.tests.size() - kMaxRows : 0;
    if (first > 0) html_ += row({"earlier ones are left out"});
    for (size_t k = first; k < run_.tests.size(); ++k) {
      std::vector<std::string> cells;
      for (const std::string& column : columns) cells.push_back(run_.tests[k].shown(column));
      html_ += row(cells);
    }
    html_ += many ? "</table></div></details>\n" : "</table></div>\n";
  }

  void add_classes(const std::optional<JsonObject>& evaluation, const char* title) {
    if (!evaluation) return;
    const std::string table = class_table(*evaluation);
    if (table.empty()) return;
    heading(title);
    html_ += "<p class=\"dim\">After step " + e(evaluation->shown("step")) + ": " +
             e(evaluation->shown("samples")) + " samples.</p>\n" + table;
    add_part("Confusions", confusion_tables(*evaluation));
    add_part("Scores", evaluation_charts(*evaluation));
    add_part("Largest losses", worst_samples(*evaluation));
  }

  void add_part(const char* title, const std::string& html) {
    if (html.empty()) return;
    heading(title);
    html_ += html;
  }

  void add_timeline() {
    const std::string picture = rank_timeline(report_);
    if (picture.empty()) return;
    heading("Ranks");
    html_ += picture;
  }

  void add_servers() {
    const std::string table = server_table(report_);
    if (table.empty()) return;
    heading("Parameter servers");
    html_ += table;
  }

  void add_replacements() {
    const std::string table = replacement_table(report_);
    if (table.empty()) return;
    heading("Replaced trainers");
    html_ += table;
  }

  void add_times() {
    const std::vector<TimePart> parts = time_parts(report_);
    double total = 0;
    for (const TimePart& part : parts) total += part.seconds;
    const auto bottleneck = report_.verdict ? report_.verdict->object("bottleneck") : std::nullopt;
    const std::string line = bottleneck ? bottleneck->text("line") : "";
    if (!(total > 0) && report_.profile.empty() && line.empty()) return;
    heading("Where the time went");
    if (!line.empty()) html_ += "<p>" + e(line) + "</p>\n";
    if (total > 0) {
      html_ += "<div class=\"bar\">";
      for (size_t k = 0; k < parts.size(); ++k) {
        html_ +=
            format_printf("<div style=\"width:%.2f%%;background:%s\" title=\"",
                          100 * parts[k].seconds / total, kBarColours[k % std::size(kBarColours)]) +
            e(parts[k].name) + "\"></div>";
      }
      html_ += "</div>\n<table>";
      for (size_t k = 0; k < parts.size(); ++k) {
        html_ += std::string("<tr><td><span style=\"color:") +
                 kBarColours[k % std::size(kBarColours)] + "\">&#9632;</span> " + e(parts[k].name) +
                 "</td><td class=\"number\">" + e(duration_text(parts[k].seconds)) +
                 "</td><td class=\"number\">" +
                 format_printf("%.1f %%", 100 * parts[k].seconds / total) + "</td></tr>\n";
      }
      html_ += "</table>\n";
    }
    if (!report_.profile.empty()) {
      html_ += "<details open><summary>time per kind of operation</summary>" +
               preformatted(report_.profile) + "</details>\n";
    }
  }

  void add_warnings() {
    std::vector<std::string> lines;
    for (const JsonObject& event : run_.not_finite) {
      if (lines.size() >= kMaxRows) break;
      const std::string rank = event.has("rank") ? " on rank " + event.shown("rank") : "";
      lines.push_back("step " + event.shown("step") + ": " + event.shown("what") +
                      " was infinite or NaN" + rank +
                      "; updates left out: " + event.shown("updates"));
    }
    if (run_.summary && run_.summary->number("damaged") > 0) {
      lines.push_back("damaged or unreadable images: " + run_.summary->shown("damaged"));
    }
    for (const LogWarning& warning : report_.warnings) {
      lines.push_back(warning.text + "  (" + warning.log +
                      (warning.times > 1 ? ", " + std::to_string(warning.times) + " times)" : ")"));
    }
    lines.insert(lines.end(), report_.notes.begin(), report_.notes.end());
    if (lines.empty()) return;
    heading("Warnings");
    html_ += "<ul>\n";
    for (const std::string& line : lines) html_ += "<li>" + e(line) + "</li>\n";
    html_ += "</ul>\n";
  }

  void add_settings() {
    if (run_.settings.empty()) return;
    heading("Settings");
    std::string given, defaults;
    size_t rows = 0;
    for (const auto& [key, setting] : run_.settings) {
      if (++rows > 2000) break;
      const auto most = [](const std::string& text) {
        return text.size() > 400 ? text.substr(0, 400) + "..." : text;
      };
      (setting.is_default() ? defaults : given) +=
          row({most(key), most(setting.value), most(setting.origin)});
    }
    html_ += "<table>" + row({"key", "value", "from"}, "th") + given + "</table>\n";
    if (!defaults.empty()) {
      html_ += "<details><summary>defaults</summary><table class=\"default\">" + defaults +
               "</table></details>\n";
    }
  }

  const RunReport& report_;
  const RunHistory& run_;
  const RunMetrics metrics_;
  std::string html_;
};

}  // namespace

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
  const double step = mean_of(run, "batch_time"), data = mean_of(run, "data_time");
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

std::string report_page(const RunReport& report) { return Page(report).html(); }

}  // namespace fleet
