// A node that has nothing wrong: tests break one thing at a time.
#pragma once

#include <gmock/gmock.h>

#include "launch/tools/doctor/checks.h"

namespace fleet {

inline NodeFacts healthy_node(int nnodes = 2) {
  NodeFacts node;
  node.address = node.numeric = "10.0.0.1";
  node.hostname = "gpu01";
  node.hostname_address = "10.0.0.1";
  node.nnodes = nnodes;
  node.ranks = 2;
  node.interfaces = {{"lo", true, true, 65536, {"127.0.0.1"}},
                     {"eth0", true, false, 1500, {"10.0.0.1"}}};
  node.rdma = {{"mlx5_0", 1, "ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)"}};
  node.gpu.devices = 2;
  node.gpu.driver_module = true;
  node.gpu.driver = "580.65.06";
  node.gpu.cuda = "13.0";
  node.gpu.nccl = "2.28.9";
  node.gpu.cudnn = "9.19.0";
  node.gpu.peer_memory = true;
  node.gpu.gpus = {{"NVIDIA H200", 4 << 20, 140LL << 30, 0},
                   {"NVIDIA H200", 4 << 20, 140LL << 30, 0}};
  MachineFacts& machine = node.machine;
  machine.cores = 64;
  machine.memory = 512LL << 30;
  machine.open_files = machine.open_files_hard = 1 << 20;
  machine.locked_memory = -1;
  machine.shm_size = machine.shm_free = 256LL << 30;
  machine.shm_writable = true;
  machine.log_dir = "/work";
  machine.log_free = 1LL << 40;
  machine.log_files_free = 1 << 20;
  return node;
}

// The worst of some findings, and all that they say: "[fail] what -> next".
inline Severity worst_of(const Findings& findings) {
  Severity worst = Severity::kOk;
  for (const Finding& one : findings) worst = std::max(worst, one.severity);
  return worst;
}
// One finding, of this severity, with advice.
inline auto OneFinding(Severity severity) {
  using ::testing::ElementsAre, ::testing::AllOf, ::testing::Field, ::testing::Not;
  return ElementsAre(AllOf(Field("severity", &Finding::severity, severity),
                           Field("next", &Finding::next, Not(std::string()))));
}
inline std::string said(const Findings& findings) {
  std::string text;
  for (const Finding& one : findings) {
    text += one.severity == Severity::kFail   ? "[fail] "
            : one.severity == Severity::kWarn ? "[warn] "
                                              : "[ok] ";
    text += one.what + (one.next.empty() ? "" : " -> " + one.next) + "\n";
  }
  return text;
}

}  // namespace fleet
