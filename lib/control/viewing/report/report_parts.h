// Parts of the page of a report. Internal to the report.
#pragma once

#include <string>

#include "viewing/report/run_report.h"

namespace fleet {

const char* report_style();  // CSS of the page
// The text, escaped and bounded.
std::string preformatted(const std::string& text);
// The mean of a curve of training; NaN without points.
double mean_of_curve(const RunHistory& run, const char* name);
// Use of the run's time, as HTML; "" if the run recorded nothing of it.
std::string times_part(const RunReport& report);

}  // namespace fleet
