// Square pictures of an evaluation: ROC curves, precision and recall, calibration.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "base/number_text.h"
#include "viewing/report/evaluation_tables.h"
#include "viewing/runs/curve_chart.h"

namespace fleet {
namespace {

// Pixels of a picture.
constexpr double kPictureSide = 320, kPictureLeft = 44, kPictureTop = 30, kPictureBottom = 40,
                 kPictureRight = 12;
constexpr const char* kCurveColours[] = {"#2a6fdb", "#d9730d", "#1a7f37", "#8250df",
                                         "#cf222e", "#bf8700", "#0a7ea4", "#8c959f"};
constexpr size_t kMostCurves = std::size(kCurveColours);

double left_of(double share) {
  return kPictureLeft + share * (kPictureSide - kPictureLeft - kPictureRight);
}
double top_of(double share) {
  return kPictureSide - kPictureBottom - share * (kPictureSide - kPictureTop - kPictureBottom);
}
std::string place_of(double x, double y) {
  return format_printf("%.1f %.1f", left_of(std::clamp(x, 0.0, 1.0)),
                       top_of(std::clamp(y, 0.0, 1.0)));
}

std::string label_at(const char* kind, double x, double y, const std::string& text) {
  return format_printf("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", kind, x, y) +
         escape_markup(text) + "</text>";
}

// From 0 to 1 both ways.
std::string square_picture(const std::string& title, const std::string& across,
                           const std::string& up, const std::string& content) {
  std::string html = format_printf(
      "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 %g "
      "%g\">",
      kPictureSide, kPictureSide);
  html += label_at("title", 0, 16, title);
  std::string lines;
  for (int tenth = 0; tenth <= 10; tenth += 5) {
    const double share = tenth / 10.0;
    lines += "M" + place_of(0, share) + "L" + place_of(1, share) + "M" + place_of(share, 0) + "L" +
             place_of(share, 1);
    const std::string text = number_text(share);
    html += label_at("label end", kPictureLeft - 6, top_of(share) + 4, text);
    html += label_at("label middle", left_of(share), kPictureSide - kPictureBottom + 15, text);
  }
  html += label_at("label middle", left_of(0.5), kPictureSide - 8, across);
  html += "<text class=\"label middle\" transform=\"translate(12 " +
          format_printf("%.1f) rotate(-90)\">", top_of(0.5)) + escape_markup(up) + "</text>";
  return html + "<path class=\"grid\" d=\"" + lines + "\"/>" + content + "</svg>";
}

std::string coloured_path(const std::string& d, size_t colour, const std::string& title) {
  return std::string("<path style=\"stroke:") + kCurveColours[colour % kMostCurves] +
         ";stroke-width:1.8\" d=\"" + d + "\"><title>" + escape_markup(title) + "</title></path>";
}

std::string roc_path(const std::vector<double>& points) {
  std::string d = "M" + place_of(0, 0);
  double before = 0;
  for (size_t p = 0; p + 3 < points.size(); p += 4) {
    d += "L" + place_of(points[p], before) + "L" + place_of(points[p + 1], points[p + 2]);
    before = points[p + 2];
  }
  return d + "L" + place_of(1, 1);
}

std::string precision_path(const std::vector<double>& points) {
  std::string d = "M" + place_of(0, points[3]);
  for (size_t p = 0; p + 3 < points.size(); p += 4)
    d += "L" + place_of(points[p + 2], points[p + 3]);
  return d;
}

std::string diagonal() {
  return "<path class=\"diagonal\" d=\"M" + place_of(0, 0) + "L" + place_of(1, 1) + "\"/>";
}

std::string curve_pictures(const JsonObject& evaluation) {
  std::string roc, precision, legend;
  size_t colour = 0;
  const auto areas = evaluation.numbers("auroc"), precisions = evaluation.numbers("ap");
  for (const JsonObject& curve : evaluation.objects("curves")) {
    const std::vector<double> points = curve.numbers("points");
    const double label = curve.number("class");
    const bool finite = std::ranges::all_of(points, [](double v) { return std::isfinite(v); });
    if (points.size() < 4 || !finite || !(label >= 0 && label < 1e9)) continue;
    if (colour == kMostCurves) break;
    const auto c = static_cast<size_t>(label);
    const std::string name = shown_class(evaluation, static_cast<int64_t>(c));
    roc += coloured_path(roc_path(points), colour, name);
    precision += coloured_path(precision_path(points), colour, name);
    legend += std::string("<li><span style=\"color:") + kCurveColours[colour] +
              "\">&#9632;</span> " + escape_markup(name);
    if (c < areas.size() && std::isfinite(areas[c])) {
      legend += format_printf(", AUC %.3f", areas[c]);
    }
    if (c < precisions.size() && std::isfinite(precisions[c])) {
      legend += format_printf(", AP %.3f", precisions[c]);
    }
    legend += "</li>\n";
    ++colour;
  }
  if (colour == 0) return "";
  const size_t classes = evaluation.numbers("support").size();
  const bool left_out = classes > colour && classes > 2;
  return "<div>" + square_picture("ROC", "false positives", "true positives", diagonal() + roc) +
         "</div>\n<div>" +
         square_picture("Precision and recall", "recall", "precision", precision) +
         "<ul class=\"legend\">" + legend + "</ul>" +
         (left_out ? "<p class=\"dim\">the classes of the lowest average precision</p>" : "") +
         "</div>\n";
}

std::string calibration_picture(const JsonObject& evaluation) {
  const std::vector<double> bins = evaluation.numbers("calibration");
  if (bins.size() < 3) return "";
  double most = 1;
  for (size_t b = 0; b + 2 < bins.size(); b += 3) most = std::fmax(most, bins[b]);
  const double width = 3.0 / static_cast<double>(bins.size());
  std::string content, line;
  for (size_t b = 0; b + 2 < bins.size(); b += 3) {
    if (!(bins[b] > 0)) continue;
    // Samples of the bin: a pale column.
    const double low = width * static_cast<double>(b) / 3, share = bins[b] / most;
    const double height = top_of(0) - top_of(share);
    content +=
        format_printf("<rect x=\"%.1f\" y=\"%.1f\"", left_of(low), top_of(share)) +
        format_printf(" width=\"%.1f\" height=\"%.1f\"", left_of(width) - left_of(0) - 1, height) +
        " style=\"fill:#b8bfc6;opacity:.4\"><title>" + number_text(bins[b]) +
        " samples</title></rect>";
    line += (line.empty() ? "M" : "L") + place_of(bins[b + 1], bins[b + 2]) + "h0";
  }
  if (line.empty()) return "";
  const bool binary = evaluation.numbers("support").size() == 2;
  return "<div>" +
         square_picture("Calibration", binary ? "probability of the second class" : "confidence",
                        binary ? "share of the second class" : "accuracy",
                        content + diagonal() + coloured_path(line, 0, "calibration")) +
         "<p class=\"dim\">columns: samples, the longest one " + number_text(most) + "</p></div>\n";
}

}  // namespace

std::string evaluation_charts(const JsonObject& evaluation) {
  const std::string pictures = curve_pictures(evaluation) + calibration_picture(evaluation);
  return pictures.empty() ? "" : "<div class=\"square\">\n" + pictures + "</div>\n";
}

}  // namespace fleet
