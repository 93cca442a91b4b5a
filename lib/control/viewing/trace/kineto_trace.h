// Traces of other profilers in Chrome's JSON format, as torch.profiler (Kineto) and Paddle's
// profiler export them, merged into a job's trace.
#pragma once

#include <optional>
#include <string>

#include "viewing/trace/job_trace.h"

namespace fleet {

// A file given as FILE or RANK=FILE.
struct MergedFile {
  std::optional<int> rank;
  std::string path;
};
MergedFile merged_file(const std::string& given);

// Adds the activities in `json` to the rank that it belongs to: `rank`, or else the rank that the
// file names ("distributedInfo"), or the one whose process it is. Its times (microseconds after
// "baseTimeNanoseconds", of CLOCK_REALTIME) are put on the clock of the rank's node. Returns the
// number of activities. kUsage, naming the file, if it is no such trace or its rank is not known.
size_t merge_chrome_trace(const std::string& json, const MergedFile& file, JobTrace* trace);

}  // namespace fleet
