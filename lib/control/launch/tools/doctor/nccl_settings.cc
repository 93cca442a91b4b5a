#include <algorithm>

#include "base/text.h"
#include "launch/planning/secret_names.h"
#include "launch/tools/doctor/checks.h"

namespace fleet {
namespace {

constexpr char kCheck[] = "settings";

// The variables that NCCL reads: a typo resembles one of them.
const std::vector<std::string>& nccl_variables() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const std::string& name :
         split("ALGO ALLOC_P2P_NET_LL_BUFFERS BUFFSIZE CGA_CLUSTER_SIZE CHECK_POINTERS "
               "CHUNK_SIZE COLLNET_ENABLE COLLNET_NODE_THRESHOLD COMM_BLOCKING COMM_ID "
               "COMM_SHRINK_SHARE_RESOURCES COMM_SPLIT_SHARE_RESOURCES CONF_FILE "
               "CONNECT_ROUND_MAX_PEERS CREATE_THREAD_CONTEXT CROSS_NIC CTA_POLICY CUMEM_ENABLE "
               "CUMEM_HOST_ENABLE DEBUG DEBUG_FILE DEBUG_SUBSYS DEBUG_TIMESTAMP_FORMAT "
               "DEBUG_TIMESTAMP_LEVELS DMABUF_ENABLE ENV_PLUGIN GDRCOPY_ENABLE "
               "GDRCOPY_FIFO_ENABLE GDRCOPY_FLUSH_ENABLE GDRCOPY_SYNC_ENABLE GDR_FLUSH_DISABLE "
               "GIN_COUNTER_POOL_SIZE GIN_ENABLE GIN_ERROR_QUERY_SEC GIN_GDAKI_NIC_HANDLER "
               "GIN_GDAKI_QP_DEPTH GIN_IB_ALLGATHER_TAG GIN_IB_ALLTOALL_TAG GIN_NCONTEXTS "
               "GIN_PROXY_QUEUE_SIZE GIN_SIGNAL_POOL_SIZE GIN_TYPE GRAPH_DUMP_FILE "
               "GRAPH_DUMP_FILE_RANK GRAPH_FILE GRAPH_HELPER_DISABLE GRAPH_MIXING_SUPPORT "
               "GRAPH_REGISTER GROUP_CUDA_STREAM HOSTID IB_ADAPTIVE_ROUTING IB_ADDR_FAMILY "
               "IB_ADDR_RANGE IB_AR_THRESHOLD IB_DATA_DIRECT IB_DISABLE IB_ECE_ENABLE "
               "IB_FIFO_TC IB_GID_INDEX IB_HCA IB_MERGE_NICS IB_MERGE_VFS IB_MQP_RETRY_ALL "
               "IB_MQP_RETRY_CNT IB_MQP_RETRY_SLEEP_MSEC IB_PCI_RELAXED_ORDERING IB_PKEY "
               "IB_QPS_PER_CONNECTION IB_RETRY_CNT IB_RETURN_ASYNC_EVENTS IB_ROCE_VERSION_NUM "
               "IB_ROUTABLE_FLID_GID_INDEX IB_SL IB_SL_DEFAULT IB_SPLIT_DATA_ON_QPS IB_TC "
               "IB_TC_DEFAULT IB_TIMEOUT IB_USE_INLINE IB_WARN_RAIL_LOCAL IGNORE_CPU_AFFINITY "
               "IGNORE_DISABLED_P2P IPC_COLLECTIVE IPC_SENDRECV L1_SHARED_MEMORY_CARVEOUT "
               "LAUNCH_MODE LAUNCH_ORDER_IMPLICIT LAUNCH_RACE_FATAL LEGACY_CUDA_REGISTER "
               "LL128_BUFFSIZE LL128_C2C LL128_NTHREADS LL_BUFFSIZE LOCAL_REGISTER MAX_CTAS "
               "MAX_NCHANNELS MAX_NRINGS MAX_P2P_NCHANNELS MEM_SYNC_DOMAIN MIN_CTAS "
               "MIN_NCHANNELS MIN_NRINGS MIN_P2P_NCHANNELS MNNVL_CLIQUE_ID MNNVL_ENABLE "
               "MNNVL_RAIL_PER_HOST MNNVL_SCATTER_NETS_ENABLE MNNVL_UUID NCHANNELS_PER_NET_PEER "
               "NET NETDEVS_POLICY NET_DISABLE_INTRA NET_FORCE_FLUSH NET_FORCE_MERGE "
               "NET_GDR_C2C NET_GDR_LEVEL NET_GDR_READ NET_MERGE_LEVEL "
               "NET_OPTIONAL_RECV_COMPLETION NET_OVERHEAD NET_PLUGIN NET_PLUGIN_REF_COUNT "
               "NET_SHARED_BUFFERS NET_SHARED_COMMS NSOCKS_PERTHREAD NTHREADS NVB_DISABLE "
               "NVB_PRECONNECT NVLINK_UTIL_CENTRIC_SCHED_ENABLE NVLSTREE_MAX_CHUNKSIZE "
               "NVLS_CHUNKSIZE NVLS_ENABLE NVLS_NCHANNELS NVTX_DISABLE OOB_NET_ENABLE "
               "OOB_NET_IFNAME P2P_DIRECT_DISABLE P2P_DISABLE P2P_LEVEL P2P_LL_THRESHOLD "
               "P2P_NET_CHUNKSIZE P2P_NVL_CHUNKSIZE P2P_PCI_CHUNKSIZE P2P_PXN_LEVEL "
               "P2P_READ_ENABLE P2P_SCHEDULE_GROUP_SIZE P2P_USE_CUDA_MEMCPY PAT_ENABLE "
               "PROFILER_PLUGIN PROGRESS_APPENDOP_FREQ PROTO PROXY_APPEND_BATCH_SIZE "
               "PROXY_CPUSET PROXY_DUMP_SIGNAL PXN_C2C PXN_DISABLE RAS_ADDR RAS_ENABLE "
               "RAS_TIMEOUT_FACTOR REPORT_CONNECT_PROGRESS RUNTIME_CONNECT SET_CPU_STACK_SIZE "
               "SET_STACK_SIZE SET_THREAD_NAME SHM_DISABLE SHM_LOCALITY SHM_MEMCPY_MODE "
               "SHM_USE_CUDA_MEMCPY SINGLE_PROC_MEM_REG_ENABLE SOCKET_FAMILY SOCKET_IFNAME "
               "SOCKET_INLINE SOCKET_MIN_TASKSIZE SOCKET_NTHREADS SOCKET_RCVBUF "
               "SOCKET_RETRY_CNT SOCKET_RETRY_SLEEP_MSEC SOCKET_SNDBUF SYM_CTAS SYM_KERNEL "
               "THREAD_THRESHOLDS TOPO_DUMP_FILE TOPO_DUMP_FILE_RANK TOPO_FILE TUNER_PLUGIN "
               "UID_STAGGER_RATE UID_STAGGER_THRESHOLD UNPACK_DOUBLE_NCHANNELS "
               "WARN_ENABLE_DEBUG_INFO WIN_ENABLE WIN_STRIDE WORK_ARGS_BYTES WORK_FIFO_BYTES",
               ' ')) {
      names.push_back("NCCL_" + name);
    }
    return names;
  }();
  return all;
}

// Variables that PyTorch has renamed: it now reads TORCH_ and the old name.
bool is_torchs_old_name(const std::string& name) {
  return name == "NCCL_BLOCKING_WAIT" || name == "NCCL_ASYNC_ERROR_HANDLING" ||
         name == "NCCL_DESYNC_DEBUG";
}

// Variables of other software whose names resemble those of NCCL.
bool is_foreign(const std::string& name) {
  constexpr const char* kBeginnings[] = {"NCCL_DIR",    "NCCL_HOST_IP", "NCCL_IBEXT_", "NCCL_LIB",
                                         "NCCL_OFI_",   "NCCL_PATH",    "NCCL_PORT",   "NCCL_ROOT",
                                         "NCCL_SHARP_", "NCCL_UCX_"};
  return std::ranges::any_of(kBeginnings,
                             [&](const char* beginning) { return name.starts_with(beginning); });
}

bool is_known(const std::string& name) {
  return std::ranges::find(nccl_variables(), name) != nccl_variables().end();
}

// Variables that NCCL reads as numbers; it ignores other values such as "true".
bool is_number(const std::string& name) {
  for (const char* ending :
       {"_DISABLE", "_ENABLE", "_NCHANNELS", "_CTAS", "_GID_INDEX", "_NTHREADS", "_PERTHREAD",
        "_RETRY_CNT", "_BUFFSIZE", "_CROSS_NIC", "_IB_TIMEOUT", "_IB_TC", "_IB_SL",
        "_COMM_BLOCKING", "_QPS_PER_CONNECTION"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

std::string with_value(const NodeFacts& node, const std::string& name) {
  return name + "=" + node.setting(name);
}

bool is_on(const NodeFacts& node, const std::string& name) {
  long long value = 0;
  return parse_int(node.setting(name), &value) && value != 0;
}

bool has_rdma(const NodeFacts& node) {
  return std::any_of(node.rdma.begin(), node.rdma.end(),
                     [](const RdmaPort& port) { return port.state == "ACTIVE"; });
}

// The names set in the environment or in NCCL's file.
std::vector<std::string> set_names(const NodeFacts& node) {
  std::vector<std::string> names;
  for (const auto* from : {&node.environment, &node.nccl_conf}) {
    for (const auto& [name, value] : *from) {
      if (name.starts_with("NCCL_")) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

void check_debugging(const NodeFacts& node, Findings* found) {
  const std::string level = upper_case(node.setting("NCCL_DEBUG"));
  if (level == "INFO" || level == "TRACE") {
    found->push_back(warn(
        kCheck, with_value(node, "NCCL_DEBUG") + " is for debugging: every rank writes many lines",
        "WARN reports faults; unset it for a long run"));
  }
  if (level.empty() && !node.setting("NCCL_DEBUG_SUBSYS").empty()) {
    found->push_back(warn(kCheck, "NCCL_DEBUG_SUBSYS has no effect without NCCL_DEBUG=INFO",
                          "set both or neither"));
  }
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
    if (node.setting(name).empty()) continue;
    found->push_back(warn(kCheck,
                          with_value(node, name) + " overrides NCCL's choice for each message size",
                          "leave it out, unless you measured a gain on this cluster"));
  }
  if (node.setting("CUDA_LAUNCH_BLOCKING") == "1") {
    found->push_back(warn(kCheck, "CUDA_LAUNCH_BLOCKING=1 makes every kernel launch wait",
                          "it is for debugging: unset it"));
  }
}

void check_contradictions(const NodeFacts& node, Findings* found) {
  const bool no_ib = is_on(node, "NCCL_IB_DISABLE"), no_p2p = is_on(node, "NCCL_P2P_DISABLE");
  const auto contradict = [&](const std::string& a, const std::string& b) {
    found->push_back(warn(kCheck,
                          with_value(node, a) + " and " + with_value(node, b) +
                              " contradict each other: the first wins",
                          "leave one of them out"));
  };
  if (no_ib && !node.setting("NCCL_IB_HCA").empty()) contradict("NCCL_IB_DISABLE", "NCCL_IB_HCA");
  if (no_p2p && !node.setting("NCCL_P2P_LEVEL").empty()) {
    contradict("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL");
  }
  const std::string net = node.setting("NCCL_NET");
  if (no_ib && net == "IB") contradict("NCCL_IB_DISABLE", "NCCL_NET");
  for (const char* kind : {"CTAS", "NCHANNELS"}) {
    const std::string least = std::string("NCCL_MIN_") + kind,
                      most = std::string("NCCL_MAX_") + kind;
    long long low = 0, high = 0;
    if (parse_int(node.setting(least), &low) && parse_int(node.setting(most), &high) &&
        low > high) {
      contradict(least, most);
    }
  }
  if (node.nnodes > 1 && has_rdma(node) && (no_ib || net == "Socket")) {
    found->push_back(warn(kCheck,
                          with_value(node, no_ib ? "NCCL_IB_DISABLE" : "NCCL_NET") +
                              " disables RDMA on this node (" + node.rdma[0].device +
                              "): NCCL uses TCP, which is many times slower",
                          "leave it out"));
  }
  if (!has_rdma(node) && net == "IB") {
    found->push_back(fail(kCheck, "NCCL_NET=IB, but this node has no active RDMA port",
                          "leave it out, or see the check `rdma`"));
  }
  if (no_p2p && node.gpu.gpus.size() > 1) {
    found->push_back(warn(
        kCheck,
        with_value(node, "NCCL_P2P_DISABLE") +
            " sends data between GPUs of a node through host memory" +
            (is_on(node, "NCCL_SHM_DISABLE") ? ", and NCCL_SHM_DISABLE sends it through the network"
                                             : ""),
        "leave it out, unless peer access is broken on this machine"));
  }
}

// Devices in NCCL_IB_HCA: names with a port, by prefix; `=` means exactly, `^` all but these.
void check_hca(const NodeFacts& node, Findings* found) {
  std::string list = node.setting("NCCL_IB_HCA");
  if (list.empty() || list.starts_with('^') || is_on(node, "NCCL_IB_DISABLE")) return;
  const bool exact = list.starts_with('=');
  if (exact) list.erase(0, 1);
  for (const std::string& entry : split(list, ',')) {
    const std::string name = entry.substr(0, entry.find(':'));
    const bool there = std::any_of(node.rdma.begin(), node.rdma.end(), [&](const RdmaPort& port) {
      return exact ? port.device == name : port.device.starts_with(name);
    });
    if (there) continue;
    std::vector<std::string> devices;
    for (const RdmaPort& port : node.rdma) devices.push_back(port.device);
    found->push_back(fail(kCheck, "NCCL_IB_HCA names '" + name + "', which this node does not have",
                          devices.empty() ? "it has no RDMA device: leave it out"
                                          : "its devices are " + join(devices, ", ")));
  }
}

}  // namespace

Findings check_spelling(const NodeFacts& node) {
  Findings found;
  for (const std::string& name : set_names(node)) {
    if (is_torchs_old_name(name)) {
      found.push_back(
          warn(kCheck, name + " is obsolete", "PyTorch reads TORCH_" + name + " instead"));
      continue;
    }
    if (is_known(name) || is_foreign(name)) continue;
    const std::string nearest = nearest_name(name, nccl_variables());
    if (nearest.empty()) continue;  // belongs to a plugin, or to another release of NCCL
    found.push_back(
        warn(kCheck, name + " is not a variable of NCCL", "did you mean " + nearest + "?"));
  }
  return found;
}

Findings check_values(const NodeFacts& node) {
  Findings found;
  for (const std::string& name : set_names(node)) {
    const std::string value = node.setting(name);
    long long number = 0;
    if (is_known(name) && is_number(name) && !value.empty() && !parse_int(value, &number)) {
      found.push_back(warn(kCheck, with_value(node, name) + " is not a number: NCCL ignores it",
                           "write 1, 0 or another number"));
    }
  }
  const auto choose = [&](const char* name, const std::vector<std::string>& choices) {
    const std::string value = upper_case(node.setting(name));
    if (value.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) return;
    found.push_back(warn(kCheck, with_value(node, name) + " is not a valid value",
                         "write one of " + join(choices, ", ")));
  };
  choose("NCCL_DEBUG", {"VERSION", "WARN", "INFO", "ABORT", "TRACE"});
  choose("NCCL_SOCKET_FAMILY", {"AF_INET", "AF_INET6"});
  return found;
}

Findings check_sense(const NodeFacts& node) {
  Findings found;
  check_debugging(node, &found);
  check_contradictions(node, &found);
  check_hca(node, &found);
  return found;
}

}  // namespace fleet
