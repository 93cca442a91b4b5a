// JSON that a fleetrun or a fleetd tells about a job: its record, its verdict.
#include "daemon/job_info.h"
#include "tests/fuzz/fuzz.h"

FLEET_FUZZ(job_info) {
  using fleet::fuzz::attempt;
  const std::string json(bytes);
  attempt([&] {
    const fleet::JobInfo job = fleet::read_job_info(json);
    const fleet::JobInfo again = fleet::read_job_info(fleet::job_info_json(job));
    fleet::fuzz::require(again.record == job.record, "a job as JSON is that job");
    fleet::jobs_table({job, again}, 1e9);
    fleet::job_status({job, again}, 1e9);
  });
  attempt([&] { fleet::read_job_record(json); });
  fleet::read_verdict(json);
}
