// How a job ended, for programs: verdict.json.
#pragma once

#include <string>

#include "rendezvous/types.h"

namespace fleet {

// One JSON object. `world`: of the job; nullptr where it did not run. `unix_time`: when it was
// heard.
std::string verdict_json(const Verdict& verdict, const std::string& job_id, const World* world,
                         double unix_time);

}  // namespace fleet
