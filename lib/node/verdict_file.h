// How a job ended, for programs: verdict.json.
#pragma once

#include <string>

#include "node/job_record.h"
#include "rendezvous/types.h"

namespace fleet {

// One JSON object. `world`: of the job; nullptr where it did not run. `unix_time`: when it was
// heard.
std::string verdict_json(const Verdict& verdict, const std::string& job_id, const World* world,
                         double unix_time);

// The verdict.json of this run; "" if there is none, or that of another run.
std::string verdict_of_run(const JobRecord& record);

// Copies of verdicts that could not be kept beside the logs end so, in runtime_folder().
inline constexpr char kVerdictEnding[] = ".verdict";

// Keeps the text as LOG_DIR/verdict.json of this run; if that cannot be (a full disk, a folder that
// is gone), in runtime_folder(), /tmp or the home folder, and a warning says where. The path; "" if
// it can be kept nowhere, which an error says.
std::string keep_verdict(const JobRecord& record, const std::string& json);

}  // namespace fleet
