#include "viewing/runs/curve_chart.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/number_text.h"
#include "base/terminal_parser.h"

namespace fleet {
namespace {

// Pixels.
constexpr double kChartWidth = 470, kHeight = 250;
constexpr double kLeft = 62, kRight = 14, kTop = 44, kBottom = 30;
constexpr int kColumns = 400;
constexpr size_t kMostCharts = 40;

struct Range {
  double low = 0, high = 1;
  bool logarithmic = false;
  // 0 to 1.
  double at(double value) const {
    if (logarithmic) return (std::log10(value) - std::log10(low)) / std::log10(high / low);
    return (value - low) / (high - low);
  }
};

// The step of a scale with about `count` marks: 1, 2 or 5 times a power of ten.
double nice_step(double range, int count) {
  const double raw = range / count, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

std::vector<double> marks_of(const Range& range, int count) {
  std::vector<double> marks;
  if (range.logarithmic) {
    const int first = static_cast<int>(std::ceil(std::log10(range.low) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log10(range.high) + 1e-9));
    const int step = std::max((last - first) / count, 1);
    for (int power = first; power <= last; power += step) marks.push_back(std::pow(10, power));
    return marks;
  }
  const double step = nice_step(range.high - range.low, count);
  for (double k = std::ceil(range.low / step - 1e-9); k * step <= range.high + step * 1e-9; ++k) {
    marks.push_back(k == 0 ? 0 : k * step);
    if (marks.size() > 100) break;  // values too close for a double
  }
  return marks;
}

// A range that is never empty.
Range widened(double low, double high) {
  if (!(high > low)) {
    const double by = std::max(std::abs(low) * 0.05, 1e-12);
    return {low - by, high + by};
  }
  return {low, high};
}

Range value_range(const CurveChart& chart) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const Curve& curve : chart.curves) {
    for (const CurvePoint& point : curve.points) {
      if (!std::isfinite(point.value)) continue;
      low = std::min(low, point.value);
      high = std::max(high, point.value);
    }
  }
  // A few values far above the others would flatten these.
  if (chart.may_be_logarithmic && low > 0 && high / low > 200) return {low, high, true};
  if (low >= 0 && low < high / 2) low = 0;
  const Range range = widened(low, high);
  const double margin = (range.high - range.low) * 0.04;
  return {range.low == 0 ? 0 : range.low - margin, range.high + margin};
}

Range step_range(const CurveChart& chart) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const Curve& curve : chart.curves) {
    for (const CurvePoint& point : curve.points) {
      low = std::min(low, point.step);
      high = std::max(high, point.step);
    }
  }
  return widened(low, high);
}

bool has_values(const CurveChart& chart) {
  return std::ranges::any_of(chart.curves, [](const Curve& curve) {
    return std::ranges::any_of(curve.points,
                               [](const CurvePoint& p) { return std::isfinite(p.value); });
  });
}

// Over a fiftieth of the points, half of them on each side. Values that are not finite separate it.
Points neighbourhood_average(const Points& points) {
  const size_t side = std::max<size_t>(points.size() / 100, 1);
  Points means = points;
  for (size_t begin = 0; begin < points.size();) {
    size_t end = begin;
    while (end < points.size() && std::isfinite(points[end].value)) ++end;
    double sum = 0;
    size_t first = begin, last = begin;  // summed
    for (size_t i = begin; i < end; ++i) {
      for (; last < std::min(i + side + 1, end); ++last) sum += points[last].value;
      for (; first + side < i; ++first) sum -= points[first].value;
      means[i].value = sum / static_cast<double>(last - first);
    }
    begin = end + 1;
  }
  return means;
}

class ChartDrawing {
 public:
  explicit ChartDrawing(const CurveChart& chart)
      : chart_(chart), steps_(step_range(chart)), values_(value_range(chart)) {}

  std::string svg(double left, double top) const {
    std::string text = format_printf("<g transform=\"translate(%g %g)\">", left, top);
    text += "<text class=\"title\" x=\"0\" y=\"16\">" + escape_markup(chart_.title) +
            "</text><text class=\"unit\" x=\"0\" y=\"32\">" + escape_markup(chart_.unit) +
            "</text>" + legend() + grid();
    for (const double step : chart_.resumes) {
      if (step < steps_.low || step > steps_.high) continue;
      text += "<path class=\"resume\" d=\"M" + point(step, values_.low) + "V" +
              format_printf("%.1f", kTop) + "\"><title>resumed at step " + number_text(step) +
              "</title></path>";
    }
    for (size_t k = 0; k < chart_.curves.size(); ++k) text += curve(chart_.curves[k], k);
    return text + "</g>\n";
  }

 private:
  double x(double step) const { return kLeft + steps_.at(step) * (kChartWidth - kLeft - kRight); }
  double y(double value) const {
    return kHeight - kBottom - values_.at(value) * (kHeight - kTop - kBottom);
  }
  std::string point(double step, double value) const {
    return format_printf("%.1f %.1f", x(step), y(value));
  }

  std::string legend() const {
    if (chart_.curves.size() < 2) return {};
    std::string text;
    double right = kChartWidth - kRight;
    for (size_t k = chart_.curves.size(); k-- > 0;) {
      const std::string& name = chart_.curves[k].name;
      text += format_printf("<text class=\"label end\" x=\"%.0f\" y=\"16\">", right) +
              escape_markup(name) + "</text>";
      right -= 8 * static_cast<double>(name.size()) + 16;  // on a phone, text is larger
      text += format_printf("<rect class=\"fill%zu\" x=\"%.0f\"", k % 4, right) +
              " y=\"7\" width=\"10\" height=\"10\" rx=\"2\"/>";
      right -= 12;
    }
    return text;
  }

  std::string grid() const {
    std::string text, lines;
    for (const double mark : marks_of(values_, 4)) {
      lines += "M" + format_printf("%.1f %.1f", kLeft, y(mark)) +
               format_printf("H%.1f", kChartWidth - kRight);
      text += format_printf("<text class=\"label end\" x=\"%.0f\" y=\"%.1f\">", kLeft - 6,
                            y(mark) + 4) +
              number_text(mark) + "</text>";
    }
    for (const double mark : marks_of(steps_, 5)) {
      text += format_printf("<text class=\"label middle\" x=\"%.1f\" y=\"%.0f\">", x(mark),
                            kHeight - kBottom + 16) +
              number_text(mark) + "</text>";
    }
    return "<path class=\"grid\" d=\"" + lines + "\"/>" + text;
  }

  std::string path(const Points& points) const {
    std::string d;
    bool drawing = false;
    for (const CurvePoint& p : thin_points(points, kColumns)) {
      if (!std::isfinite(p.value)) {
        drawing = false;
        continue;
      }
      d += (drawing ? "L" : "M") + point(p.step, p.value);
      if (!drawing) d += "h0";  // a single point is visible with round caps
      drawing = true;
    }
    return d;
  }

  std::string curve(const Curve& curve, size_t index) const {
    const std::string colour = std::to_string(index % 4);
    const std::string title = "<title>" + escape_markup(curve.name) + "</title></path>";
    std::string text;
    if (curve.style == Curve::Style::kMarks) {
      text += "<path class=\"line" + colour + "\" d=\"" + path(curve.points) + "\">" + title;
      for (const CurvePoint& p : thin_points(curve.points, 60)) {
        if (!std::isfinite(p.value)) continue;
        text += format_printf("<circle class=\"fill%zu\" r=\"%g\"", index % 4, 2.6) +
                format_printf(" cx=\"%.1f\" cy=\"%.1f\">", x(p.step), y(p.value)) + "<title>" +
                escape_markup(curve.name) + " " + number_text(p.value) + " at step " +
                number_text(p.step) + "</title></circle>";
      }
    } else if (curve.style == Curve::Style::kLine || curve.points.size() < 100) {
      text += "<path class=\"line" + colour + "\" d=\"" + path(curve.points) + "\">" + title;
    } else {
      text += "<path class=\"raw" + colour + "\" d=\"" + path(curve.points) + "\"/>";
      text += "<path class=\"line" + colour + "\" d=\"" +
              path(neighbourhood_average(curve.points)) + "\">" + title;
    }
    return text + not_finite(curve);
  }

  // Crosses at the top: the curve has no value there.
  std::string not_finite(const Curve& curve) const {
    Points bad;
    for (const CurvePoint& p : curve.points) {
      if (!std::isfinite(p.value)) bad.push_back({p.step, 0});
    }
    std::string d;
    for (const CurvePoint& p : thin_points(bad, 60)) {
      d += format_printf("M%.1f %.1fl6 6m0 -6l-6 6", x(p.step) - 3, kTop + 1);
    }
    if (d.empty()) return {};
    return "<path class=\"bad\" d=\"" + d + "\"><title>" + escape_markup(curve.name) +
           ": infinite or NaN</title></path>";
  }

  const CurveChart& chart_;
  const Range steps_, values_;
};

// Without its end.
std::string opening_tag(double width, double height) {
  return "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"" +
         format_printf(" viewBox=\"0 0 %g %g\"", width, height);
}

Points curve_values(const RunHistory& run, const std::string& name) {
  const auto found = run.train.find(name);
  return found == run.train.end() ? Points() : found->second;
}

Points tests_of(const RunHistory& run, const std::string& name) {
  Points points;
  for (const JsonObject& test : run.tests) {
    const double step = test.number("step");
    if (std::isfinite(step)) points.push_back({step, test.number(name)});
  }
  return points;
}

// "Perplexity"; a name with capitals, such as mAP, stays.
std::string title_of(std::string label) {
  const auto is_lower = [](char c) { return c < 'A' || c > 'Z'; };
  if (!label.empty() && label[0] >= 'a' && label[0] <= 'z' &&
      std::ranges::all_of(label, is_lower)) {
    label[0] = static_cast<char>(label[0] - 'a' + 'A');
  }
  return label;
}

// Drawn under another title, or not of interest by step.
bool is_known(std::string_view name) {
  constexpr std::string_view kNames[] = {"loss",  "learning_rate", "speed",      "epoch",
                                         "steps", "samples",       "batch_time", "data_time"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string safe;
  for (size_t i = 0; i < text.size();) {
    char32_t code = 0;
    const size_t size = character_size(text.substr(i), &code);
    const bool control = (code < 0x20 && code != '\n' && code != '\t') ||
                         (code >= 0x7f && code < 0xa0) || is_direction_mark(code);
    if (size == 0 || control) {
      safe += "\xef\xbf\xbd";
      i += std::max<size_t>(size, 1);
    } else if (size > 1) {
      safe += text.substr(i, size);
      i += size;
    } else {
      switch (text[i++]) {
        case '<':
          safe += "&lt;";
          break;
        case '>':
          safe += "&gt;";
          break;
        case '&':
          safe += "&amp;";
          break;
        case '"':
          safe += "&quot;";
          break;
        case '\'':
          safe += "&#39;";
          break;
        default:
          safe += text[i - 1];
      }
    }
  }
  return safe;
}

Points thin_points(const Points& points, int columns) {
  if (points.size() <= static_cast<size_t>(columns) * 2) return points;
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const CurvePoint& p : points) {
    low = std::min(low, p.step);
    high = std::max(high, p.step);
  }
  const double width = std::max(high - low, 1e-300) / columns;
  Points kept;
  for (size_t i = 0; i < points.size();) {
    const double column = std::floor((points[i].step - low) / width);
    size_t end = i, least = i, most = i, bad = points.size();
    for (; end < points.size() && std::floor((points[end].step - low) / width) == column; ++end) {
      const double value = points[end].value;
      if (!std::isfinite(value)) {
        bad = std::min(bad, end);
        continue;
      }
      if (!(points[least].value <= value)) least = end;
      if (!(points[most].value >= value)) most = end;
    }
    size_t chosen[] = {i, least, most, end - 1, bad};
    std::ranges::sort(chosen);
    size_t last = points.size();
    for (const size_t index : chosen) {
      const bool is_new = index != last && index < points.size();
      if (is_new && (index == bad || std::isfinite(points[index].value))) {
        kept.push_back(points[index]);
      }
      last = index;
    }
    i = end;
  }
  return kept;
}

std::vector<CurveChart> charts_of(const RunHistory& run) {
  std::vector<CurveChart> charts;
  const auto both = [&](const std::string& title, const std::string& unit,
                        const std::string& name) {
    CurveChart chart{title, unit, {}, run.resumes};
    if (Points points = curve_values(run, name); !points.empty())
      chart.curves.push_back({"training", std::move(points), Curve::Style::kNoisy});
    if (Points points = tests_of(run, name); !points.empty())
      chart.curves.push_back({"evaluation", std::move(points), Curve::Style::kMarks});
    charts.push_back(std::move(chart));
  };
  const auto one = [&](const char* title, const char* unit, const char* name) {
    charts.push_back({title, unit, {{title, curve_values(run, name)}}, run.resumes});
  };
  both("Loss", "by step", "loss");
  charts.back().may_be_logarithmic = true;
  const std::vector<std::string> metrics = run.metrics().names;
  for (const std::string& name : metrics) {
    if (name == "loss") continue;
    const std::string label = label_of_metric(name);
    both(title_of(label), label == name ? "by step" : name + ", by step", name);
  }
  one("Learning rate", "by step", "learning_rate");
  one("Speed", "samples per second and rank, by step", "speed");
  for (const auto& [name, points] : run.train) {
    // Those of fleet-worker are of no interest by step.
    const bool drawn = is_known(name) || std::ranges::find(metrics, name) != metrics.end();
    const bool shown = run.is_reported() && !drawn && charts.size() < kMostCharts;
    if (shown) one(name.c_str(), "by step", name.c_str());
  }
  std::erase_if(charts, [](const CurveChart& chart) { return !has_values(chart); });
  return charts;
}

// Plain colours: many viewers of SVG know no CSS variables.
const char* curve_chart_style() {
  return R"(.chart{font:12px system-ui,sans-serif}.chart text{fill:#1f2328}
.chart .title{font-size:14px;font-weight:600}.chart .unit,.chart .label{fill:#656d76}
.chart .end{text-anchor:end}.chart .middle{text-anchor:middle}
.chart path{fill:none;stroke-linejoin:round;stroke-linecap:round}
.chart .grid{stroke:#d8dee4}.chart .resume{stroke:#656d76;stroke-dasharray:3 3}
.chart .bad{stroke:#cf222e;stroke-width:1.4}
.chart .line0{stroke:#2a6fdb;stroke-width:1.8}.chart .line1{stroke:#d9730d;stroke-width:1.8}
.chart .line2{stroke:#1a7f37;stroke-width:1.8}.chart .line3{stroke:#8250df;stroke-width:1.8}
.chart .raw0{stroke:#2a6fdb;opacity:.3}.chart .raw1{stroke:#d9730d;opacity:.3}
.chart .raw2{stroke:#1a7f37;opacity:.3}.chart .raw3{stroke:#8250df;opacity:.3}
.chart .fill0{fill:#2a6fdb}.chart .fill1{fill:#d9730d}.chart .fill2{fill:#1a7f37}.chart .fill3{fill:#8250df}
)";
}

std::string curve_charts_svg(const std::vector<CurveChart>& charts) {
  const auto count = static_cast<double>(charts.size());
  const double width = charts.size() > 1 ? 2 * kChartWidth + 20 : kChartWidth;
  const double height = std::max(std::ceil(count / 2), 1.0) * kHeight + 10;
  std::string svg = opening_tag(width, height) +
                    format_printf(" width=\"%g\" height=\"%g\"><style>", width, height) +
                    curve_chart_style() +
                    "</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  if (charts.empty()) {
    svg += "<text class=\"label\" x=\"10\" y=\"24\">no values were recorded</text>\n";
  }
  for (size_t k = 0; k < charts.size(); ++k) {
    const size_t row = k / 2;
    svg += ChartDrawing(charts[k]).svg(k % 2 == 0 ? 5 : kChartWidth + 15,
                                       static_cast<double>(row) * kHeight + 5);
  }
  return svg + "</svg>\n";
}

std::string curve_charts_html(const std::vector<CurveChart>& charts) {
  std::string html = "<div class=\"charts\">\n";
  for (const CurveChart& chart : charts) {
    html += opening_tag(kChartWidth, kHeight) + ">" + ChartDrawing(chart).svg(0, 0) + "</svg>\n";
  }
  return html + "</div>\n";
}

}  // namespace fleet
