// The outcome of a job, for programs: verdict.json.
#pragma once

#include <string>

#include "node/job_record.h"
#include "rendezvous/types.h"

namespace fleet {

// One JSON object. `world`: of the job; nullptr if it did not run. `unix_time`: when the verdict
// arrived.
std::string verdict_json(const Verdict& verdict, const std::string& job_id, const World* world,
                         double unix_time);

// The verdict.json of this run; "" if there is none, or only that of another run.
std::string verdict_of_run(const JobRecord& record);

// Suffix of verdicts kept in runtime_folder() because the log folder was not writable.
inline constexpr char kVerdictSuffix[] = ".verdict";

// Writes the text to LOG_DIR/verdict.json of this run. If that fails (a full disk, a removed
// folder), writes to runtime_folder(), /tmp or the home folder, and a warning names the file.
// Returns the path; "" and an error if all fail. sync: flush it to the disk.
std::string write_verdict_file(const JobRecord& record, const std::string& json, bool sync);

}  // namespace fleet
