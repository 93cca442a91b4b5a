#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/env.h"
#include "base/file.h"
#include "base/small_file.h"
#include "base/text.h"
#include "base/thread.h"
#include "launch/planning/addresses.h"
#include "launch/planning/cores.h"
#include "launch/planning/fingerprint.h"
#include "launch/planning/launch_plan.h"
#include "launch/tools/doctor/facts.h"

namespace fleet {
namespace {

int mtu_of(const std::string& name) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  return socket && ::ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

std::vector<NetworkInterface> read_interfaces() {
  std::vector<NetworkInterface> all;
  for (const InterfaceAddress& one : interface_addresses()) {
    auto at = std::find_if(all.begin(), all.end(), [&](const NetworkInterface& known) {
      return known.name == one.interface;
    });
    if (at == all.end()) {
      at = all.insert(all.end(), {one.interface, false, false, mtu_of(one.interface), {}});
      at->up = (one.flags & IFF_UP) && (one.flags & IFF_RUNNING);
      at->loopback = one.flags & IFF_LOOPBACK;
    }
    if (!one.address.empty()) at->addresses.push_back(one.address);
  }
  return all;
}

long long limit_of(__rlimit_resource resource, bool hard) {
  rlimit limit = {};
  ::getrlimit(resource, &limit);
  const rlim_t value = hard ? limit.rlim_max : limit.rlim_cur;
  return value == RLIM_INFINITY ? -1 : static_cast<long long>(value);
}

MachineFacts read_machine(const std::string& log_dir) {
  MachineFacts machine;
  machine.cores = static_cast<int>(available_cores().size());
  const CgroupLimits limits = cgroup_limits();
  machine.cpu_quota = limits.cpus;
  machine.memory_limit = limits.memory;
  machine.memory = static_cast<long long>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  machine.open_files = limit_of(RLIMIT_NOFILE, false);
  machine.open_files_hard = limit_of(RLIMIT_NOFILE, true);
  machine.locked_memory = limit_of(RLIMIT_MEMLOCK, false);
  struct statvfs status;
  if (::statvfs("/dev/shm", &status) == 0) {
    machine.shm_size = status.f_blocks * status.f_frsize;
    machine.shm_free = status.f_bavail * status.f_frsize;
    machine.shm_writable = ::access("/dev/shm", W_OK) == 0;
  }
  machine.log_dir = nearest_folder(log_dir);
  if (::statvfs(machine.log_dir.c_str(), &status) == 0) {
    machine.log_free = status.f_bavail * status.f_frsize;
    if (status.f_files > 0) machine.log_files_free = static_cast<long long>(status.f_favail);
  }
  return machine;
}

// Reads them like NCCL: NCCL_CONF_FILE or ~/.nccl.conf, then the system's file.
std::map<std::string, std::string> read_all_nccl_conf() {
  const auto own = get_env("NCCL_CONF_FILE");
  const auto home = get_env("HOME");
  auto all = own    ? read_nccl_conf(*own)
             : home ? read_nccl_conf(*home + "/.nccl.conf")
                    : read_nccl_conf({});
  all.merge(read_nccl_conf("/etc/nccl.conf"));
  return all;
}

}  // namespace

const NetworkInterface* NodeFacts::primary_interface() const {
  if (is_loopback(numeric)) {  // all of 127.0.0.0/8 belongs to lo
    const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                    [](const NetworkInterface& one) { return one.loopback; });
    return found == interfaces.end() ? nullptr : &*found;
  }
  for (const NetworkInterface& one : interfaces) {
    if (std::find(one.addresses.begin(), one.addresses.end(), numeric) != one.addresses.end()) {
      return &one;
    }
  }
  return nullptr;
}

const NetworkInterface* NodeFacts::interface(const std::string& name) const {
  for (const NetworkInterface& one : interfaces) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::string NodeFacts::setting(const std::string& name) const {
  for (const auto* from : {&environment, &nccl_conf}) {
    if (const auto found = from->find(name); found != from->end()) return found->second;
  }
  return {};
}

std::vector<RdmaPort> read_rdma(const std::string& root) {
  std::vector<RdmaPort> ports;
  std::error_code none;
  for (const auto& device :
       std::filesystem::directory_iterator(root + "/sys/class/infiniband", none)) {
    std::error_code no_ports;
    for (const auto& entry :
         std::filesystem::directory_iterator(device.path() / "ports", no_ports)) {
      RdmaPort port;
      port.device = device.path().filename().string();
      long long number = 1;
      if (parse_int(entry.path().filename().string(), &number)) {
        port.port = static_cast<int>(number);
      }
      const std::string state = small_file(entry.path().string() + "/state");  // "4: ACTIVE"
      port.state = state.substr(state.find(':') == std::string::npos ? 0 : state.find(':') + 1);
      port.state = std::string(trim(port.state));
      port.link_layer = small_file(entry.path().string() + "/link_layer");
      port.rate = small_file(entry.path().string() + "/rate");
      ports.push_back(std::move(port));
    }
  }
  std::sort(ports.begin(), ports.end(), [](const RdmaPort& a, const RdmaPort& b) {
    return std::tie(a.device, a.port) < std::tie(b.device, b.port);
  });
  return ports;
}

std::map<std::string, std::string> read_nccl_conf(const std::string& path) {
  std::map<std::string, std::string> settings;
  for (const std::string& line : split(small_file(path), '\n')) {
    const size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    settings[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return settings;
}

NodeFacts gather_settings(const std::vector<std::string>& environment) {
  NodeFacts node;
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (equals == std::string::npos || !(must_match(name) || is_node_specific(name))) continue;
    node.environment[name] = entry.substr(equals + 1);
  }
  node.nccl_conf = read_all_nccl_conf();
  node.rdma = read_rdma();
  return node;
}

NodeFacts gather_facts(const std::vector<std::string>& environment, const std::string& log_dir) {
  NodeFacts node = gather_settings(environment);
  node.hostname = host_name();
  node.hostname_address = resolve(node.hostname);
  node.interfaces = read_interfaces();
  node.gpu = probe_gpus();
  node.machine = read_machine(log_dir);
  return node;
}

}  // namespace fleet
