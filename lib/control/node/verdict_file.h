// The outcome of a job, for programs: verdict.json.
#pragma once

#include <string>

#include "base/json.h"
#include "node/job_record.h"
#include "rendezvous/types.h"

namespace fleet {

// `world`: of the job; nullptr if it did not run. `unix_time`: when the verdict arrived.
wire::JobVerdict job_verdict(Verdict verdict, const World* world, double unix_time);
// `started`: when this node's part of the job started, in seconds since 1970.
Json verdict_json(const wire::JobVerdict& outcome, const std::string& job_id, double started);
// The record's verdict as verdict.json has it: one JSON object. Bytes that are not UTF-8 are
// replaced.
std::string verdict_file_text(const JobRecord& record);

// Suffix of verdicts kept in runtime_folder() because the log folder was not writable.
inline constexpr char kVerdictSuffix[] = ".verdict";

// Writes the record's verdict to LOG_DIR/verdict.json. If that fails (a full disk, a removed
// folder), writes to runtime_folder(), /tmp or the home folder, and a warning names the file.
// Returns the path; "" and an error if all fail. sync: flush it to the disk. *folder_hangs: leaves
// out the log folder; set if its file system does not respond within 15 s.
std::string write_verdict_file(const JobRecord& record, bool sync, bool* folder_hangs);

}  // namespace fleet
