// Checks of one node's cores, memory, limits and disks.
#include <cmath>
#include <cstdio>

#include "base/counted.h"
#include "base/number_text.h"
#include "base/text.h"
#include "launch/tools/doctor/checks.h"

namespace fleet {
namespace {

constexpr long long kMiB = 1 << 20, kGiB = 1 << 30;

std::string size_text(long long bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes >= kGiB ? "%.1f GiB" : "%.0f MiB",
                static_cast<double>(bytes) / static_cast<double>(bytes >= kGiB ? kGiB : kMiB));
  return text;
}

std::string cores_text(double cores) { return number_text(std::round(cores * 100) / 100); }

}  // namespace

Findings check_cores(const NodeFacts& node) {
  const MachineFacts& machine = node.machine;
  const std::string cores = std::to_string(machine.cores);
  const bool limited = machine.cpu_quota > 0 && machine.cpu_quota < machine.cores;
  const double usable = limited ? machine.cpu_quota : machine.cores;
  const std::string text = limited ? "the cgroup allows " + cores_text(usable) + " of " + cores +
                                         " cores, which sets the number of threads"
                                   : cores + (machine.cores == 1 ? " core" : " cores");
  if (usable < node.ranks) {
    return {warn("cores", text + ", for " + counted(node.ranks, "rank"),
                 limited ? "give the container more cores (docker --cpus, a pod's limit), or start "
                           "fewer ranks here"
                         : "start fewer ranks here, or give the job more cores")};
  }
  return {ok("cores", text)};
}

Findings check_memory(const NodeFacts& node) {
  const MachineFacts& machine = node.machine;
  const bool limited = machine.memory_limit > 0 && machine.memory_limit < machine.memory;
  const std::string text = limited ? "the cgroup allows " + size_text(machine.memory_limit) +
                                         " of " + size_text(machine.memory)
                                   : size_text(machine.memory);
  const long long usable = limited ? machine.memory_limit : machine.memory;
  if (usable / node.ranks < kGiB) {
    return {warn("memory", text + ", less than 1 GiB per rank",
                 limited
                     ? "raise the limit (docker --memory, a pod's limit): the kernel kills ranks "
                       "that exceed it"
                     : "start fewer ranks here")};
  }
  return {ok("memory", text)};
}

Findings check_open_files(const NodeFacts& node) {
  constexpr long long kFew = 4096, kTooFew = 256;
  const MachineFacts& machine = node.machine;
  const long long limit = machine.open_files, hard = machine.open_files_hard;
  if (limit < 0 || limit >= kFew) {
    return {ok("open files", limit < 0 ? "unlimited" : "at most " + std::to_string(limit))};
  }
  const std::string next =
      hard < 0 || hard >= kFew
          ? "ulimit -n " + (hard < 0 ? "65536" : std::to_string(hard)) + " before fleetrun"
          : "raise nofile in /etc/security/limits.conf, LimitNOFILE of the "
            "service, or docker --ulimit nofile=65536";
  const std::string text = "at most " + std::to_string(limit) +
                           ": connections of a large job and data loaders need thousands";
  return {limit < kTooFew ? fail("open files", text, next) : warn("open files", text, next)};
}

Findings check_shared_memory(const NodeFacts& node) {
  const MachineFacts& machine = node.machine;
  constexpr char kNext[] =
      "use docker --shm-size=8g or --ipc=host; in a pod, an emptyDir of medium "
      "Memory at /dev/shm";
  if (machine.shm_size == 0 || !machine.shm_writable) {
    return {fail("/dev/shm", machine.shm_size == 0 ? "does not exist" : "is not writable", kNext)};
  }
  const std::string text = size_text(machine.shm_free) + " free of " + size_text(machine.shm_size);
  // Docker's default is 64 MiB. NCCL takes a few MiB per pair of ranks, data loaders whole batches.
  if (machine.shm_free < 128 * kMiB) {
    return {warn("/dev/shm", text + ": too little for NCCL's buffers and for data loaders", kNext)};
  }
  return {ok("/dev/shm", text)};
}

Findings check_disk(const NodeFacts& node) {
  const MachineFacts& machine = node.machine;
  const std::string text = size_text(machine.log_free) + " free at " + machine.log_dir;
  constexpr char kNext[] = "free some space, or choose another --log_dir";
  if (machine.log_free < 16 * kMiB) return {fail("log folder", text, kNext)};
  if (machine.log_files_free == 0) {
    return {fail("log folder", "no inodes are free at " + machine.log_dir, kNext)};
  }
  if (machine.log_free < kGiB) return {warn("log folder", text, kNext)};
  return {ok("log folder", text)};
}

}  // namespace fleet
