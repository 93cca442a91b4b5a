// The result files of a job, by their fields.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {

// verdict.json of a log folder; discarded if it is not there (docs/how-to/why_a_job_failed.md).
inline nlohmann::json verdict_in(const JobFolder& job, const std::string& logs = "log") {
  return nlohmann::json::parse(job.read(logs + "/verdict.json"), nullptr, false);
}

}  // namespace fleet
