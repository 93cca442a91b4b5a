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

}  // namespace fleet
