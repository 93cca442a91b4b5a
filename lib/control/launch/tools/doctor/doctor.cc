// fleetrun doctor: finds problems of the nodes before a job does. It takes the arguments of a
// start, but PROGRAM is optional and --format json is allowed. Prints the findings of all nodes,
// the same on each; the exit code is kExitPreflight if a check failed. Runs in the main thread of a
// process without other threads.
#include <cstdio>

#include "base/commands.h"
#include "base/error.h"
#include "base/log.h"
#include "launch/planning/arguments.h"
#include "launch/planning/launch_plan.h"
#include "launch/starting/start_job.h"
#include "launch/tools/doctor/preflight.h"

namespace fleet {
namespace {

wire::Join join_for_doctor(const LaunchPlan& plan, bool hosts) {
  wire::Join join = join_of(plan, hosts);
  join.mutable_node()->mutable_devices(0)->clear_ids();  // one rank: the other nodes try its port
  join.mutable_node()->clear_servers();
  join.mutable_node()->clear_ranks();
  return join;
}

// The report on one node, without the others.
JobReport alone(const NodeFacts& facts) { return examine({report_of(facts)}, true); }

JobReport meet(const LaunchPlan& plan, const NodeFacts& facts) {
  const auto server = host_rendezvous(plan);
  const auto client = RendezvousClient::make(client_options(plan, server.get()), [](auto event) {
    const auto* message = std::get_if<wire::HostMessage>(&event);
    if (message && message->has_progress()) spdlog::warn("{}", message->progress().line());
  });
  const Assignment assignment = client->join(join_for_doctor(plan, server != nullptr));
  JobReport report = exchange_reports(plan, facts, assignment);
  client->send(envelope(&wire::NodeMessage::mutable_finished));
  client->leave();
  if (server) server->stop();
  return report;
}

JobReport report_on(const LaunchPlan& plan, const NodeFacts& facts) {
  if (plan.topology.nnodes == 1) return alone(facts);
  try {
    return meet(plan, facts);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUsage) throw;
    JobReport report = alone(facts);
    report.entries.push_back(
        {fail("rendezvous", (error.where().empty() ? "" : error.where() + ": ") + error.failure(),
              error.next()),
         {}});
    return report;
  }
}

CommandSyntax doctor_syntax() {
  CommandSyntax syntax{
      .program = "fleetrun doctor",
      .words = "[PROGRAM]",
      .about =
          "check this node, or all nodes and their network\n"
          "Checks this node. With --ips, or with --master and --nnodes, run it on every node to "
          "check all nodes\nand the network between them: GPUs, driver, NCCL, interfaces, "
          "connections between all pairs, MTU,\nclocks, RDMA, limits, cgroup, disk, NCCL_* "
          "settings and differences between the nodes. With PROGRAM it\nalso compares the "
          "program's file. It validates the options as a start does.",
      .more = "Exit code: 0, or 117 if a check failed. Options: fleetrun --help all\n"};
  syntax.options.choice({.key = "format", .value = "table|json", .optional = true}, "table",
                        {"table", "json"}, "output format (default: table)");
  return syntax;
}

int run_doctor(const std::vector<std::string>& arguments) {
  LaunchRequest request = parse_arguments(arguments, ArgumentsFor::kDoctor);
  if (print_if_requested(request, [] { return command_help(doctor_syntax()); })) return 0;
  set_up_logging(request.config.logs.level, "fleetrun");
  const bool json = request.dry_run.format == "json";
  check_options(request, ArgumentsFor::kDoctor);
  const LaunchPlan plan = make_doctor_plan(std::move(request));
  const NodeFacts facts = gather_facts(plan);
  const JobReport report = report_on(plan, facts);
  const bool failed = report.worst() == Severity::kFail;
  const auto nodes = report.nodes.size();
  const std::string table = "fleetrun doctor, " + std::to_string(nodes) +
                            (nodes == 1 ? " node (" + facts.hostname + ")" : " nodes") + "\n" +
                            report_table(report) +
                            (failed ? "at least one check failed\n" : "no check failed\n");
  std::fputs((json ? report_json(report) : table).c_str(), stdout);
  return failed ? kExitPreflight : 0;
}

}  // namespace

FLEET_COMMAND(doctor) {
  def.syntax = doctor_syntax();
  def.run_unparsed = run_doctor;
}

}  // namespace fleet
