// fleetrun stacks [JOB]: the stacks of all ranks of a job, on request.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/commands.h"
#include "diagnosis/stacks.h"
#include "node/control_socket.h"
#include "node/job_record.h"

namespace fleet {
namespace {

// The rendezvous waits a little longer than the debuggers may take, and as long for dumps of
// PyTorch's flight recorder.
constexpr int kDumpSeconds = 12, kAnswerSeconds = 5;

int run_stacks(const CommandLine& line) {
  const std::string job = line.words.empty() ? "" : line.words[0];
  const double limit = line.settings.number("timeout");
  wire::ControlRequest request;
  request.mutable_stacks()->set_limit_ms(static_cast<int>(limit * 1000));
  const int wait = std::max(kDumpSeconds, static_cast<int>(std::ceil(limit))) + kAnswerSeconds;
  const wire::ControlReply reply =
      send_control_request(running_job_called(job, "stacks").pid(), request, wait);
  const StackReport& report = reply.stacks();
  const bool json = line.settings.text("format") == "json";
  std::fputs((json ? stack_report_json(report) : stack_report_text(report)).c_str(), stdout);
  return 0;
}

}  // namespace

FLEET_COMMAND(stacks) {
  def.syntax = {
      .program = "fleetrun stacks",
      .words = "[JOB]",
      .about =
          "show the call stacks of all ranks of a running job\n"
          "Run it on a node of the job. It shows the ranks of all nodes, and groups equal\nstacks. "
          "JOB: its --job_id or the pid of any of its processes here; optional if\nonly one job "
          "runs here.",
      .most = 1};
  def.syntax.options
      .choice({.key = "format", .value = "text|json", .optional = true}, "text", {"text", "json"},
              "output format: text for people, json for programs")
      .number({.key = "timeout", .value = "SECONDS"}, 12, 4, 600,
              "how long the debuggers may take on a busy machine");
  def.run = run_stacks;
}

}  // namespace fleet
