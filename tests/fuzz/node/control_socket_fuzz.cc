// Requests to the control socket of a fleetrun, and its replies.
#include "diagnosis/stacks.h"
#include "tests/fuzz/frames.h"
#include "transport/control_messages.h"

static void use_reply(const fleet::wire::ControlReply& reply) {
  if (reply.has_failure()) fleet::to_wire(fleet::from_wire(reply.failure()));
  if (reply.has_stacks()) {
    fleet::stack_report_text(reply.stacks());
    fleet::stack_report_json(reply.stacks());
  }
}

// "q": requests, else replies; then the frames.
FLEET_FUZZ(control_socket) {
  if (fleet::fuzz::take_byte(&bytes) == 'q') {
    fleet::fuzz::take_frames<fleet::wire::ControlRequest>(std::string(bytes), [](const auto&) {});
  } else {
    fleet::fuzz::take_frames<fleet::wire::ControlReply>(std::string(bytes), use_reply);
  }
}
