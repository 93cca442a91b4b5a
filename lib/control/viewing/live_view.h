// LiveReports as people and programs see them: fleetrun top and pages. Pure.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

struct LiveViewOptions {
  std::string sort = "rank";  // one of live_sort_keys()
  int columns = 80;           // lines are at most this long, if the terminal is that narrow
  int rows = 0;               // lines of the frame; 0: as many as it needs
  bool colors = false;
};

// What --sort takes: the rank, or a column, whose largest value then comes first.
const std::vector<std::string>& live_sort_keys();

// A frame: the job, its bottleneck, and a line for each rank. Columns that no rank knows are left
// out; so are, in a narrow frame, the least important ones. The slowest rank has a "*".
std::string live_frame(const LiveReport& report, const LiveViewOptions& options);

// A line below a frame: which keys do what, and the key that sorts it.
std::string live_key_line(const std::string& sort, int columns);

// The same for programs, as one line of JSON: unknown values are null. `now`: seconds since 1970.
std::string live_json(const LiveReport& report, const std::string& sort, double now);

}  // namespace fleet
