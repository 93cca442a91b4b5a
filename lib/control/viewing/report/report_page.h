// The HTML page of a report.
#pragma once

#include <string>

#include "viewing/report/run_report.h"

namespace fleet {

// One page without any request to elsewhere and without scripts. All text of the run is escaped.
std::string report_page(const RunReport& report);

// "1 h 02 min", "3 min 20 s", "12.3 s".
std::string duration_text(double seconds);

// Seconds of a run by use; the parts add up to the whole as far as the run recorded them.
struct TimePart {
  std::string name;
  double seconds = 0;
};
std::vector<TimePart> time_parts(const RunReport& report);

// A picture of what each rank did over time, as SVG. One row for each rank: computing, waiting for
// data, waiting for other ranks, as shares of its steps; above them the evaluations and starts. ""
// if the run recorded nothing of it. Of more than 64 ranks, the slowest ones.
std::string rank_timeline_svg(const RunReport& report);
const char* rank_timeline_style();

}  // namespace fleet
