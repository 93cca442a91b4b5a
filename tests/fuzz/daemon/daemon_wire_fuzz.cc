// Messages of fleetd and its clients.
#include "daemon/job_info.h"
#include "daemon/protocol.h"
#include "tests/fuzz/fuzz.h"
#include "transport/control_messages.h"
#include "transport/validate.h"

namespace wire = fleet::wire;

static void to_daemon(std::string_view bytes) {
  wire::ClientMessage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  fleet::fuzz::attempt([&] { fleet::check_version(message); });
  fleet::fuzz::attempt([&] { fleet::validate(message); });
}

static void to_client(std::string_view bytes) {
  wire::FleetdMessage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  if (message.has_refused()) fleet::to_wire(fleet::from_wire(message.refused()));
  fleet::fuzz::attempt([&] { fleet::validate(message); });
  for (const wire::JobInfo& job : message.jobs().jobs()) {
    fleet::fuzz::attempt([&] {
      fleet::validate(job);
      std::vector<wire::JobInfo> jobs = {job, job};
      fleet::jobs_json(jobs);
      fleet::jobs_table(jobs, 1e9);
      fleet::job_status(jobs, 1e9);
      fleet::trim_ended_runs(0, &jobs);
    });
  }
}

// "d": to fleetd, else to a client; then the message.
FLEET_FUZZ(daemon_wire) {
  fleet::fuzz::take_byte(&bytes) == 'd' ? to_daemon(bytes) : to_client(bytes);
}
