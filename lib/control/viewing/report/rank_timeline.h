// A picture of what each rank did over time, as SVG.
#pragma once

#include <string>

#include "viewing/report/run_report.h"

namespace fleet {

// One row for each rank: computing, waiting for data, waiting for other ranks, as shares of its
// steps; above them the evaluations and starts. "" if the run recorded nothing of it. Of more than
// 64 ranks, the slowest ones.
std::string rank_timeline_svg(const RunReport& report);
const char* rank_timeline_style();

}  // namespace fleet
