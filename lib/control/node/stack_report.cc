// fleetrun stacks [JOB]: the stacks of all ranks of a job, on request.
#include <cstdio>

#include "base/commands.h"
#include "diagnosis/stacks.h"
#include "node/control_socket.h"
#include "node/job_record.h"

namespace fleet {
namespace {

// Debuggers get 4 s; the rendezvous waits a little longer.
constexpr int kStackAnswerSeconds = 15;

int run_stacks(const CommandLine& line) {
  const std::string job = line.words.empty() ? "" : line.words[0];
  wire::ControlRequest request;
  request.mutable_stacks();
  const wire::ControlReply reply =
      send_control_request(running_job_called(job, "stacks").pid(), request, kStackAnswerSeconds);
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
          "JOB: its --job_id or the pid of its fleetrun here; optional if only one\njob runs here.",
      .most = 1};
  def.syntax.options.choice({.key = "format", .value = "text|json", .optional = true}, "text",
                            {"text", "json"}, "output format: text for people, json for programs");
  def.run = run_stacks;
}

}  // namespace fleet
