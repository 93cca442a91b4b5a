// Messages of fleetd and its clients.
#include "daemon/job_info.h"
#include "daemon/protocol.h"
#include "tests/fuzz/fuzz.h"

namespace wire = fleet::daemon::v1;

static void to_daemon(std::string_view bytes) {
  wire::Request message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  if (message.has_prepare()) fleet::to_wire(fleet::request_from(message.prepare()));
}

static void to_client(std::string_view bytes) {
  wire::Event message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  if (message.has_refused()) fleet::refused_event(fleet::error_from(message.refused()));
  for (const std::string& job : message.jobs().jobs()) {
    fleet::fuzz::attempt([&] { fleet::job_info_json(fleet::read_job_info(job)); });
  }
}

// "d": to fleetd, else to a client; then the message.
FLEET_FUZZ(daemon_wire) {
  fleet::fuzz::take_byte(&bytes) == 'd' ? to_daemon(bytes) : to_client(bytes);
}
