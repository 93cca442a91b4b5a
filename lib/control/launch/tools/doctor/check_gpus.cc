// Checks of GPUs, their driver and their libraries.

#include "base/text.h"
#include "launch/planning/environment.h"
#include "launch/tools/doctor/checks.h"

namespace fleet {
namespace {

// "8 x NVIDIA H200"
std::string counted(const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < names.size();) {
    size_t end = i;
    while (end < names.size() && names[end] == names[i]) ++end;
    texts.push_back(std::to_string(end - i) + " x " + names[i]);
    i = end;
  }
  return join(texts, ", ");
}

void check_each(const GpuFacts& gpu, Findings* found) {
  constexpr long long kMiB = 1 << 20;
  std::vector<int> used, broken;
  for (size_t i = 0; i < gpu.gpus.size(); ++i) {
    // An idle driver uses some hundred MiB itself.
    if (gpu.gpus[i].memory_used > 1024 * kMiB) used.push_back(static_cast<int>(i));
    if (gpu.gpus[i].uncorrected_errors > 0) broken.push_back(static_cast<int>(i));
  }
  if (!broken.empty()) {
    found->push_back(fail("GPUs", "uncorrected memory errors on GPU " + join_numbers(broken, ", "),
                          "reset or replace it; see nvidia-smi -q -d ECC"));
  }
  if (!used.empty()) {
    const GpuState& first = gpu.gpus[static_cast<size_t>(used[0])];
    found->push_back(
        warn("GPUs",
             "other programs use " + std::to_string(first.memory_used / kMiB) + " MiB of GPU " +
                 join_numbers(used, ", ") + " already",
             "find the program with nvidia-smi and end it, or choose other GPUs with --gpus"));
  }
}

}  // namespace

Findings check_gpus(const NodeFacts& node) {
  const GpuFacts& gpu = node.gpu;
  Findings found;
  if (!gpu.unreadable.empty()) {
    found.push_back(warn("GPUs",
                         "/dev/nvidia" + join_numbers(gpu.unreadable, ", ") + " cannot be opened",
                         "check the permissions of the device, or the container's device list"));
  }
  if (!gpu.problem.empty()) {
    found.push_back(
        fail("GPUs", gpu.problem,
             "check nvidia-smi, dmesg | grep -i nvrm, and in a container the NVIDIA container "
             "toolkit"));
    return found;
  }
  if (gpu.gpus.empty()) {
    if (gpu.devices > 0 || gpu.driver_module) {
      found.push_back(fail("GPUs", "the driver is loaded, but libnvidia-ml.so.1 is missing",
                           "install the driver's libraries; in a container use docker --gpus all"));
    } else {
      found.push_back(ok("GPUs", "no GPU: ranks run on the CPUs"));
    }
    return found;
  }
  std::vector<std::string> names;
  for (const GpuState& one : gpu.gpus) names.push_back(one.name);
  found.push_back(ok(
      "GPUs", counted(names) + ", driver " + gpu.driver + " for CUDA " + gpu.cuda + " and older"));
  check_each(gpu, &found);
  return found;
}

Findings check_libraries(const NodeFacts& node) {
  const GpuFacts& gpu = node.gpu;
  if (gpu.gpus.empty()) return {};
  Findings found;
  std::vector<std::string> there;
  if (!gpu.nccl.empty()) there.push_back("NCCL " + gpu.nccl);
  if (!gpu.cudnn.empty()) there.push_back("cuDNN " + gpu.cudnn);
  if (!there.empty()) found.push_back(ok("libraries", join(there, ", ")));
  if (gpu.nccl.empty() && node.ranks > 1) {
    found.push_back(warn("libraries", "libnccl.so.2 was not found",
                         "several ranks on GPUs need it (PyTorch has its own copy): install it, or "
                         "set LD_LIBRARY_PATH"));
  }
  return found;
}

Findings check_equal_gpus(const std::vector<NodeReport>& nodes) {
  Findings found;
  for (const NodeReport& node : nodes) {
    if (node.gpus == nodes[0].gpus) continue;
    const auto shown = [](const NodeReport& one) {
      return one.gpus.empty() ? std::string("no GPU") : counted(one.gpus);
    };
    found.push_back(warn("equal GPUs",
                         "node " + std::to_string(node.node_rank) + " (" + node.address + ") has " +
                             shown(node) + ", node 0 " + shown(nodes[0]),
                         "the slowest rank determines the time of each step"));
  }
  if (found.empty() && nodes.size() > 1 && !nodes[0].gpus.empty()) {
    found.push_back(ok("identical GPUs", "all nodes have the same GPUs"));
  }
  return found;
}

}  // namespace fleet
