#include "viewing/report/evaluation_tables.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/number_text.h"
#include "viewing/runs/curve_chart.h"

namespace fleet {
namespace {

constexpr size_t kMostClassRows = 1000, kMostConfusions = 20, kMostWorst = 16;
constexpr size_t kMostOfClassName = 40, kMostOfSampleName = 80, kMostOfPicture = 64 << 10;

std::string cut_text(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // within a character of UTF-8
  return text.substr(0, end) + "...";
}

std::string share_text(double value) {
  return std::isfinite(value) ? format_printf("%.3f", value) : "-";
}

std::string number_cell(const std::string& text) {
  return "<td class=\"number\">" + text + "</td>";
}

std::string head_cells(const std::vector<std::string>& names) {
  std::string html = "<tr>";
  for (const std::string& name : names) {
    html += (html.size() == 4 ? "<th>" : "<th class=\"number\">") + escape_markup(name) + "</th>";
  }
  return html + "</tr>\n";
}

double at_or_nan(const std::vector<double>& values, size_t index) {
  return index < values.size() ? values[index] : NAN;
}

// The classes to be listed: all of them, or of too many those of the lowest F1 that have samples.
std::vector<size_t> listed_classes(const std::vector<double>& support,
                                   const std::vector<double>& f1) {
  std::vector<size_t> classes(support.size());
  std::iota(classes.begin(), classes.end(), size_t{0});
  if (classes.size() <= kMostClassRows) return classes;
  std::ranges::stable_sort(
      classes, {}, [&](size_t c) { return std::pair(!(support[c] > 0), at_or_nan(f1, c)); });
  classes.resize(kMostClassRows);
  std::ranges::sort(classes);
  return classes;
}

// Counts of a confusion matrix by place among its classes.
struct Matrix {
  std::vector<double> classes, counts, support;
  explicit Matrix(const JsonObject& evaluation) {
    const auto object = evaluation.object("confusion");
    if (!object) return;
    classes = object->numbers("classes");
    counts = object->numbers("counts");
    support = evaluation.numbers("support");
    const bool fits = counts.size() == classes.size() * classes.size() &&
                      std::ranges::all_of(classes, [&](double c) {
                        return c >= 0 && c < static_cast<double>(support.size());
                      });
    if (!fits) classes.clear();
  }
  double count(size_t own, size_t predicted) const {
    return counts[own * classes.size() + predicted];
  }
  // Percent of the samples of the true class.
  double percent(size_t own, size_t predicted) const {
    const double all = support[static_cast<size_t>(classes[own])];
    return all > 0 ? 100 * count(own, predicted) / all : 0;
  }
};

std::string matrix_cell(const Matrix& matrix, size_t own, size_t predicted) {
  const double percent = matrix.percent(own, predicted);
  if (!(matrix.count(own, predicted) > 0)) return "<td data-v=\"0\"></td>";
  const char* colour = own == predicted ? "26,127,55" : "207,34,46";
  return format_printf("<td data-v=\"%.0f\" style=\"background:rgba(%s,%.2f)\">",
                       matrix.count(own, predicted), colour, 0.08 + percent * 0.005) +
         format_printf("%.0f<small>%.*f %%</small></td>", matrix.count(own, predicted),
                       percent < 10 ? 1 : 0, percent);
}

std::string matrix_table(const JsonObject& evaluation, const Matrix& matrix) {
  std::string html = "<div class=\"scroll\"><table class=\"sorted matrix\"><tr><th>true class</th>";
  for (const double c : matrix.classes) {
    html += "<th>" + escape_markup(shown_class(evaluation, static_cast<int64_t>(c))) + "</th>";
  }
  html += "</tr>\n";
  for (size_t own = 0; own < matrix.classes.size(); ++own) {
    const auto label = static_cast<int64_t>(matrix.classes[own]);
    html += "<tr><td>" + escape_markup(shown_class(evaluation, label)) + "</td>";
    for (size_t other = 0; other < matrix.classes.size(); ++other) {
      html += matrix_cell(matrix, own, other);
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

// The unit of the counts.
const char* unit_of(const JsonObject& evaluation) {
  return counts_pixels(evaluation) ? "pixels" : "samples";
}

std::string frequent_confusions(const JsonObject& evaluation, const Matrix& matrix) {
  const size_t side = matrix.classes.size();
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t own = 0; own < side; ++own) {
    for (size_t other = 0; other < side; ++other) {
      if (own != other && matrix.count(own, other) > 0) pairs.emplace_back(own, other);
    }
  }
  if (pairs.empty()) return "";
  std::ranges::stable_sort(pairs, std::ranges::greater(),
                           [&](const auto& p) { return matrix.count(p.first, p.second); });
  if (pairs.size() > kMostConfusions) pairs.resize(kMostConfusions);
  std::string html =
      "<table class=\"sorted\">" +
      head_cells({"most frequent: true class", "predicted", unit_of(evaluation), "of row"});
  for (const auto& [own, other] : pairs) {
    const auto name = [&](size_t place) {
      return escape_markup(shown_class(evaluation, static_cast<int64_t>(matrix.classes[place])));
    };
    html += "<tr><td>" + name(own) + "</td><td>" + name(other) + "</td>" +
            number_cell(format_printf("%.0f", matrix.count(own, other))) +
            number_cell(format_printf("%.1f %%", matrix.percent(own, other))) + "</tr>\n";
  }
  return html + "</table>\n";
}

bool is_base64(const std::string& text) {
  return !text.empty() && text.size() <= kMostOfPicture &&
         text.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
             "0123456789+/=") == text.npos;
}

std::string names_of(const JsonObject& evaluation, const std::vector<double>& labels) {
  std::string text;
  for (const double label : labels) {
    if (!(label >= 0 && label < 1e9)) continue;
    text += (text.empty() ? "" : ", ") + shown_class(evaluation, static_cast<int64_t>(label));
  }
  return text.empty() ? "none" : text;
}

std::string wrong_part(double share) {
  if (!std::isfinite(share)) return "";
  return format_printf("<span>wrong: %.1f %%</span>", 100 * share);
}

// Names the classes with fewer samples than evaluation.json says.
std::string small_classes(const JsonObject& evaluation, const std::vector<double>& support) {
  const double least = evaluation.number("few");
  std::string text;
  size_t count = 0;
  for (size_t c = 0; c < support.size(); ++c) {
    if (!(support[c] < least) || ++count > kMostConfusions) continue;
    text += (text.empty() ? "" : ", ") + shown_class(evaluation, static_cast<int64_t>(c)) +
            (support[c] > 0 ? format_printf(" (%.0f)", support[c]) : " (none)");
  }
  if (text.empty()) return "";
  if (count > kMostConfusions) text += ", and " + std::to_string(count - kMostConfusions) + " more";
  return format_printf("<p class=\"dim\">Fewer than %.0f ", least) + unit_of(evaluation) +
         ", so that their metrics are uncertain: " + escape_markup(text) + "</p>\n";
}

}  // namespace

bool counts_pixels(const JsonObject& evaluation) { return evaluation.text("unit") == "pixels"; }

std::string shown_class(const JsonObject& evaluation, int64_t label) {
  const std::vector<std::string> names = evaluation.texts("names");
  const auto index = static_cast<size_t>(label);
  return index < names.size() ? cut_text(names[index], kMostOfClassName) : std::to_string(label);
}

std::string class_table(const JsonObject& evaluation) {
  const std::vector<double> support = evaluation.numbers("support");
  if (support.empty()) return "";
  const std::vector<std::string> names = evaluation.texts("names");
  using Titled = std::vector<std::pair<const char*, const char*>>;
  const Titled keys =
      counts_pixels(evaluation)
          ? Titled{{"iou", "IoU"}, {"recall", "accuracy"}, {"precision", "precision"}, {"f1", "F1"}}
          : Titled{{"precision", "precision"},
                   {"recall", "recall"},
                   {"f1", "F1"},
                   {"ap", "AP"},
                   {"auroc", "AUC"}};
  std::vector<std::vector<double>> columns;
  std::vector<std::string> titles = {"class"};
  for (const auto& [key, title] : keys) {
    columns.push_back(evaluation.numbers(key));
    titles.emplace_back(title);
  }
  titles.emplace_back(unit_of(evaluation));
  const std::vector<size_t> classes = listed_classes(support, evaluation.numbers("f1"));
  const bool many = classes.size() > 20;
  std::string html = many ? "<div class=\"scroll tall\">" : "<div class=\"scroll\">";
  html += "<table class=\"sorted\">" + head_cells(titles);
  for (const size_t c : classes) {
    const std::string name =
        c < names.size() ? cut_text(names[c], kMostOfClassName) : std::to_string(c);
    html += "<tr><td>" + escape_markup(name) + "</td>";
    for (const auto& column : columns) html += number_cell(share_text(at_or_nan(column, c)));
    html += number_cell(format_printf("%.0f", support[c])) + "</tr>\n";
  }
  html += "</table></div>\n";
  if (classes.size() < support.size()) {
    html += "<p class=\"dim\">" + std::to_string(classes.size()) + " of " +
            std::to_string(support.size()) + " classes: those of the lowest F1</p>\n";
  }
  return html + small_classes(evaluation, support);
}

std::string confusion_tables(const JsonObject& evaluation) {
  const Matrix matrix(evaluation);
  if (matrix.classes.empty()) return "";
  std::string html = "<p class=\"dim\">A row is a true class, a column a predicted one: " +
                     std::string(unit_of(evaluation)) + ", and their share of the row.";
  if (matrix.classes.size() < matrix.support.size()) {
    html += " " + std::to_string(matrix.classes.size()) + " of " +
            std::to_string(matrix.support.size()) +
            " classes: those of the most errors; confusion_matrix.csv has all.";
  }
  return html + "</p>\n" + matrix_table(evaluation, matrix) +
         frequent_confusions(evaluation, matrix);
}

std::string worst_samples(const JsonObject& evaluation) {
  std::string html;
  size_t shown = 0;
  for (const JsonObject& sample : evaluation.objects("worst")) {
    if (++shown > kMostWorst) break;
    html += "<div>";
    if (const std::string jpeg = sample.text("jpeg"); is_base64(jpeg)) {
      html += "<img alt=\"\" src=\"data:image/jpeg;base64," + jpeg + "\">";
    }
    const double probability = sample.number("probability");
    html +=
        wrong_part(sample.number("wrong")) + "<b>" +
        escape_markup(names_of(evaluation, sample.numbers("expected"))) +
        "</b><span>predicted: " + escape_markup(names_of(evaluation, sample.numbers("predicted")));
    if (std::isfinite(probability)) html += format_printf(", %.1f %%", 100 * probability);
    html += "</span><span class=\"dim\">" +
            escape_markup(cut_text(sample.text("name"), kMostOfSampleName)) + "</span></div>\n";
  }
  if (html.empty()) return "";
  const char* note = "<p class=\"dim\">Red: wrong pixels, with their true classes.</p>\n";
  return std::string(counts_pixels(evaluation) ? note : "") + "<div class=\"worst\">" + html +
         "</div>\n";
}

const char* evaluation_style() {
  return R"(.scroll{overflow-x:auto;max-width:100%}.tall{max-height:480px;overflow-y:auto}
.sorted th{cursor:pointer;vertical-align:bottom}.matrix td,.matrix th{padding:2px 6px;text-align:right;white-space:nowrap}
.matrix td:first-child,.matrix th:first-child{text-align:left;position:sticky;left:0;background:#fff}
.matrix th+th{writing-mode:vertical-rl;max-height:240px}.matrix td:first-child{white-space:normal;max-width:110px;overflow-wrap:anywhere}
.sorted td.number{white-space:nowrap;padding-right:8px}.matrix small{display:block;color:#656d76;font-size:10px}
.worst{display:grid;gap:12px;grid-template-columns:repeat(auto-fill,minmax(120px,1fr))}
.worst img{display:block;max-width:96px;height:auto}.worst span,.worst b{display:block;font-size:12px;overflow-wrap:anywhere}
.square{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,270px),1fr))}.square svg{width:100%;max-width:340px}
.legend{font-size:12px;margin:4px 0 0;padding:0;list-style:none}.diagonal{stroke:#656d76;stroke-dasharray:3 3;fill:none}
@media (prefers-color-scheme:dark){.matrix td:first-child,.matrix th:first-child{background:#0d1117}}
)";
}

}  // namespace fleet
