#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "base/number_text.h"
#include "launch/planning/addresses.h"
#include "viewing/report/evaluation_tables.h"
#include "viewing/report/report_parts.h"
#include "viewing/report/run_report.h"
#include "viewing/runs/curve_chart.h"

namespace fleet {
namespace {

// A longer text may break anywhere, so that the table fits a phone.
constexpr size_t kShortCell = 10;
// Rows of a table or list.
constexpr size_t kMaxRows = 300;

std::string e(std::string_view text) { return escape_markup(text); }

std::string loss_text(double loss) {
  return std::isfinite(loss) ? number_text(loss) : "not finite";
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
        "</title>\n<style>" + curve_chart_style() + rank_timeline_style() + report_style() +
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

  // The metric that checkpoint.keep_best followed; "": none.
  std::string kept_best() const {
    return run_.summary ? run_.summary->text("best_metric") : std::string();
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
      if (kept_best().empty()) fact("best " + label, number_text(best_value(run_, metrics_)));
    }
    if (!kept_best().empty()) {
      fact("best " + label_of_metric(kept_best()), number_text(run_.summary->number("best")));
    }
    const double steps = run_.summary ? run_.summary->number("steps") : NAN;
    if (std::isfinite(steps)) fact("steps", number_text(steps));
    const double speed =
        run_.summary ? run_.summary->number("speed") : mean_of_curve(run_, "speed");
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
    const bool pixels = counts_pixels(*evaluation);
    html_ += "<p class=\"dim\">After step " + e(evaluation->shown("step")) + ": " +
             e(evaluation->shown("samples")) + (pixels ? " labelled pixels" : " samples") +
             ".</p>\n" + table;
    add_part("Confusions", confusion_tables(*evaluation));
    add_part("Scores", evaluation_charts(*evaluation));
    add_part(pixels ? "Most wrong pixels" : "Largest losses", worst_samples(*evaluation));
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
    const std::string html = times_part(report_);
    if (html.empty()) return;
    heading("Where the time went");
    html_ += html;
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

std::string report_page(const RunReport& report) { return Page(report).html(); }

}  // namespace fleet
