#include "launch/doctor/doctor.h"

#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "launch/addresses.h"
#include "launch/arguments.h"
#include "launch/devices.h"
#include "launch/doctor/exchange.h"
#include "launch/doctor/preflight.h"
#include "launch/guard.h"
#include "launch/meeting.h"
#include "launch/plan.h"
#include "launch/program.h"
#include "rendezvous/client.h"
#include "rendezvous/store_client.h"

namespace fleet {
namespace {

constexpr char kHelp[] =
    "usage: fleetrun doctor [options] [PROGRAM]\n"
    "Checks this node, or with --ips, or --master and --nnodes, the same line on each, all nodes\n"
    "and what is between them: GPUs, driver, NCCL, interfaces, connections between all pairs, "
    "MTU,\n"
    "clocks, RDMA, limits, cgroup, disk, NCCL_* settings; and what differs between the nodes, "
    "with\n"
    "PROGRAM also in its file.\n"
    "  --format table|json     how to show it\n"
    "Options are those of fleetrun. Exit code: 0, or 117 where something has failed.\n";

LaunchPlan plan_of(LaunchRequest request) {
  LaunchPlan plan;
  plan.doctor = true;
  plan.topology = resolve_topology(request.settings, host_facts());
  plan.devices = devices_of_ranks(request.settings, find_gpus(), plan.topology.listed_devices);
  if (!request.program.empty()) {
    plan.command = rank_command(request.program, worker_beside_launcher());
    plan.trains = plan.command.front() == worker_beside_launcher();
  }
  plan.log_dir = request.settings.text("log_dir");
  plan.security = guard_job(request.settings, plan.topology, true);
  plan.request = std::move(request);
  plan.ports.push_back(HeldPort::any(plan.topology.bind_address));
  return plan;
}

NodeInfo node_for_doctor(const LaunchPlan& plan, bool hosts) {
  NodeInfo node = node_of(plan, hosts);
  node.devices = {{}};  // one rank a node: its port is what the others try
  return node;
}

// One node, or what can be said of it without the others.
JobReport alone(const NodeFacts& facts) { return examine({report_of(facts)}, true); }

JobReport meet(const LaunchPlan& plan, const NodeFacts& facts) {
  const auto server = host_rendezvous(plan);
  RendezvousClient client(client_options(plan, server.get()), [](const RendezvousEvent& event) {
    if (const auto* progress = std::get_if<JoinProgress>(&event)) {
      spdlog::warn("{}", progress->line);
    }
  });
  const Assignment assignment = client.join(node_for_doctor(plan, server != nullptr));
  const JobSpec job = job_of(plan);
  const auto store = connect_store(assignment.store_address, job.job_id, assignment.epoch(),
                                   assignment.node_rank, plan.security);
  NodeReport mine = report_of(facts);
  mine.alike = job.alike;
  JobReport report = exchange_reports(assignment, resolve(plan.topology.bind_address), *store,
                                      std::move(mine), plan.request.settings.boolean("allow_skew"));
  client.finish();
  client.leave();
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

}  // namespace

int doctor(const std::vector<std::string>& arguments) {
  LaunchRequest request = parse_arguments(arguments, ArgumentsOf::kDoctor);
  if (request.action == LaunchRequest::Action::kHelp) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  set_up_logging(request.settings.text("log_level"), "fleetrun");
  const bool json = request.dry_run.format == "json";
  const LaunchPlan plan = plan_of(std::move(request));
  const NodeFacts facts = gather_facts(plan);
  const JobReport report = report_on(plan, facts);
  const bool failed = report.worst() == Severity::kFail;
  const auto nodes = report.nodes.size();
  const std::string table = "fleetrun doctor, " + std::to_string(nodes) +
                            (nodes == 1 ? " node (" + facts.hostname + ")" : " nodes") + "\n" +
                            report_table(report) +
                            (failed ? "something has failed\n" : "nothing has failed\n");
  std::fputs((json ? report_json(report) : table).c_str(), stdout);
  return failed ? kExitPreflight : 0;
}

}  // namespace fleet
