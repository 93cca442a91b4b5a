// JSON that a fleetrun or a fleetd tells about a job: its record, its verdict.
#include "daemon/job_info.h"
#include "tests/fuzz/fuzz.h"

FLEET_FUZZ(job_info) {
  using fleet::fuzz::attempt;
  const std::string json(bytes);
  attempt([&] {
    const std::string again = fleet::job_record_json(fleet::read_job_record(json));
    fleet::fuzz::require(fleet::job_record_json(fleet::read_job_record(again)) == again,
                         "a record as JSON is that record");
  });
  fleet::JobInfo job;
  job.set_verdict(json);
  fleet::jobs_json({job});
  fleet::read_verdict(json);
}
