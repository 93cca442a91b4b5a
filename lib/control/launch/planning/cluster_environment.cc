#include "launch/planning/cluster_environment.h"

#include "base/env.h"
#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/refuse.h"
#include "launch/planning/slurm.h"

namespace fleet {
namespace {

constexpr char kIndex[] = "environment JOB_COMPLETION_INDEX";

// For pod 3, "train-3.train.default.svc.cluster.local": the same name with index 0. "" if the pod
// has no such name.
std::string first_pod(const ClusterEnvironment& from, const std::string& index) {
  const std::string pod = from.host_name(), name = from.canonical_name(), ending = "-" + index;
  if (!pod.ends_with(ending) || !name.starts_with(pod + ".")) return {};
  return pod.substr(0, pod.size() - index.size()) + "0" + name.substr(pod.size());
}

void add_kubernetes(const ClusterEnvironment& from, ConfigTree* tree) {
  const auto index = from.environment("JOB_COMPLETION_INDEX");
  if (!index || !from.environment("KUBERNETES_SERVICE_HOST") || tree->peek("ips")) return;
  // Without --nnodes each pod is a separate job, as in a parameter sweep.
  long long nodes = 0;
  const std::string count = tree->peek("nnodes").value_or("1");  // perhaps a range
  if (!parse_int(std::string_view(count).substr(count.find(':') + 1), &nodes) || nodes < 2) return;
  if (!tree->peek("rank")) tree->set("rank", *index, kIndex);
  if (tree->peek("master")) return;
  const std::string master = first_pod(from, *index);
  if (master.empty()) {
    refuse("the pods of this job have no DNS names: this pod is '" + from.host_name() + "'", kIndex,
           "give the pod template a `subdomain` with a headless service (see "
           "config/kubernetes), or give --master");
  }
  tree->set("master", master, kIndex);
}

}  // namespace

ClusterEnvironment real_cluster_environment() {
  return {get_env, fleet::host_name, fleet::canonical_name};
}

std::vector<std::string> add_cluster_settings(const ClusterEnvironment& cluster, ConfigTree* tree) {
  std::vector<std::string> warnings = add_slurm_settings(cluster.environment, tree);
  add_kubernetes(cluster, tree);
  return warnings;
}

}  // namespace fleet
