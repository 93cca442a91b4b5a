#include "launch/tools/doctor/preflight.h"

#include "base/env.h"
#include "base/log.h"
#include "launch/planning/addresses.h"
#include "launch/tools/doctor/exchange.h"
#include "launch/tools/doctor/gather.h"
#include "launch/tools/doctor/nccl_settings.h"
#include "rendezvous/store_client.h"

namespace fleet {

NodeFacts gather_facts(const LaunchPlan& plan) {
  NodeFacts facts = gather_facts(whole_environment(), plan.log_dir);
  facts.address = plan.topology.address;
  facts.numeric = resolve(plan.topology.bind_address);
  facts.nnodes = plan.topology.nnodes;
  facts.ranks = plan.local_world_size;
  return facts;
}

std::string preflight(const LaunchPlan& plan, const NodeFacts& facts,
                      const Assignment& assignment) {
  const JobSpec job = job_of(plan);
  NodeReport mine = report_of(facts);
  mine.fingerprint = job.fingerprint;
  const auto store = connect_store(assignment.store_address, job.job_id, assignment.generation(),
                                   assignment.first_rank(), plan.security);
  const JobReport report = exchange_reports(assignment, resolve(plan.topology.bind_address), *store,
                                            std::move(mine), job.allow_skew);
  for (const JobReport::Entry& entry : report.entries) {
    if (entry.finding.severity != Severity::kWarn) continue;
    const std::string line = report_line(report, entry);
    spdlog::warn("{}: {}; {}", entry.finding.check, line, entry.finding.next);
  }
  if (report.worst() != Severity::kFail) return {};
  return "the job does not start because --preflight found problems:\n" +
         report_table(report, true) + "  fleetrun doctor shows all findings";
}

void warn_of_settings() {
  const NodeFacts node = gather_settings(whole_environment());
  for (const Findings& found : {check_spelling(node), check_values(node)}) {
    for (const Finding& one : found) spdlog::warn("{}; {}", one.what, one.next);
  }
}

}  // namespace fleet
