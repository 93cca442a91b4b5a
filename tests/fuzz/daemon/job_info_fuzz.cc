// A job's record and verdict, as a fleetrun or a fleetd sends them.
#include "daemon/job_info.h"
#include "tests/fuzz/fuzz.h"

FLEET_FUZZ(job_info) {
  const std::string text(bytes);
  fleet::JobInfo job;
  if (job.ParseFromString(text)) fleet::jobs_json({job});
  fleet::jobs_table({job}, 0);
}
