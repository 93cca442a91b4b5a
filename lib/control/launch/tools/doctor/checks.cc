#include "launch/tools/doctor/checks.h"

#include <array>

namespace fleet {

Findings check_settings(const NodeFacts& node) {
  Findings all = check_spelling(node);
  for (const Findings& more : {check_values(node), check_sense(node)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

Findings check_node(const NodeFacts& node) {
  constexpr std::array<NodeCheck, 12> kChecks = {
      check_gpus,           check_libraries,  check_interface,     check_nccl_interface,
      check_gloo_interface, check_rdma,       check_settings,      check_cores,
      check_memory,         check_open_files, check_shared_memory, check_disk};
  Findings all;
  for (const NodeCheck check : kChecks) {
    const Findings found = check(node);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

NodeReport report_of(const NodeFacts& node) {
  NodeReport report;
  report.address = node.address;
  report.hostname = node.hostname;
  report.findings = check_node(node);
  if (const NetworkInterface* primary_interface = node.primary_interface())
    report.mtu = primary_interface->mtu;
  for (const GpuState& gpu : node.gpu.gpus) report.gpus.push_back(gpu.name);
  return report;
}

}  // namespace fleet
