// Pictures of curves, as SVG.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "viewing/runs/run_history.h"

namespace fleet {

// Text for HTML and SVG, also within attributes: markup characters become entities, control
// characters and bytes that are not UTF-8 become U+FFFD, except newlines and tabs.
std::string escape_markup(std::string_view text);

// At most four points for each of `columns` parts of the range of steps: the first and the last,
// the minimum and the maximum; a part with a value that is not finite keeps one such point.
Points thin_points(const Points& points, int columns);

struct Curve {
  std::string name;
  Points points;
  enum class Style {
    kLine,
    kNoisy,  // a pale line, and the average of its neighbourhood
    kMarks,  // a mark at every point
  };
  Style style = Style::kLine;
};
struct CurveChart {
  std::string title;
  std::string unit;  // below the title
  std::vector<Curve> curves;
  std::vector<double> resumes;      // steps with a vertical line
  bool may_be_logarithmic = false;  // if the values span some powers of ten
};

// The charts, two in a row, as one <svg> with its own style, for a file.
std::string curve_charts_svg(const std::vector<CurveChart>& charts);
// An <svg> each, for a page: it places them by its width.
std::string curve_charts_html(const std::vector<CurveChart>& charts);
// The style of these pictures, for a page.
const char* curve_chart_style();

// The metrics of its task, learning rate and speed of a run; for a run that a program reports, all
// its values.
std::vector<CurveChart> charts_of(const RunHistory& run);

}  // namespace fleet
