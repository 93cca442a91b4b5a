#include <utility>

#include "node/control_socket.h"
#include "transport/control_messages.h"
#include "viewing/web/job_site.h"

namespace fleet {
namespace {

constexpr int kAnswerSeconds = 5;

}  // namespace

JobOutcome outcome_of(const JobInfo& job) {
  std::string text = failure_text(job.record().verdict());
  if (job.killed()) text = "its fleetrun was killed";
  return {state_of(job), std::move(text)};
}

void ask_launcher(EventLoop& loop, pid_t pid, std::function<void(WatchedJob::Answer)> done) {
  wire::ControlRequest request;
  request.mutable_live();
  const auto shared = std::make_shared<std::function<void(WatchedJob::Answer)>>(std::move(done));
  try {
    send_control_request(loop, pid, request, kAnswerSeconds,
                         [shared](const wire::ControlReply& reply) {
                           if (reply.has_failure()) {
                             return (*shared)({.failure = from_wire(reply.failure())});
                           }
                           (*shared)({.report = reply.live()});
                         });
  } catch (const Error& error) {
    (*shared)({.failure = error});
  }
}

}  // namespace fleet
