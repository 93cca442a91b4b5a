// Options of Paddle's launchers without a counterpart here; the others are in launch/options.
#include "base/text.h"
#include "launch/planning/compat/line.h"

namespace fleet {
namespace {

constexpr char kPaddle[] = "Paddle";
constexpr char kBuiltIn[] = "the rendezvous is built in and needs no etcd";

CompatOption refused(std::vector<std::string> flags, std::string value, std::string why,
                     std::string next = {}) {
  return {.of = kPaddle,
          .flags = std::move(flags),
          .value = std::move(value),
          .refused = std::move(why),
          .next = std::move(next)};
}

CompatOption ignored(std::vector<std::string> flags, std::string value, std::string why) {
  return {.of = kPaddle,
          .flags = std::move(flags),
          .value = std::move(value),
          .ignored = std::move(why)};
}

// Without etcd, nodes need another rendezvous address.
void translate_elastic_server(const std::string&, CompatLine& line) {
  if (line.own_option("master") || line.own_option("ips")) return line.ignore(kBuiltIn);
  line.refuse(kBuiltIn, "give every node the same --master=ADDRESS:PORT of one of them");
}

// etcd://10.0.0.1:2379
void translate_etcd_master(const std::string& value, CompatLine& line) {
  const std::string nodes = line.own_option("nnodes").value_or("1");
  if (nodes == "1") return line.ignore(kBuiltIn);
  line.refuse(kBuiltIn, "give every node the same --master=ADDRESS:PORT of one of them");
  const std::string host = value.substr(std::string("etcd://").size());
  line.set_option("master", host.substr(0, host.rfind(':')));
}

void translate_run_mode(const std::string&, CompatLine& line) {
  line.refuse("heterogeneous parameter servers are not supported",
              "the modes are collective and ps");
}

std::vector<CompatOption> devices() {
  const std::string why = "fleetrun supports NVIDIA GPUs (--gpus) and CPUs";
  return {refused({"--xpus", "--selected_xpus"}, "LIST", why),
          refused({"--npus", "--selected_npus", "--ascend_npus"}, "LIST", why),
          refused({"--mlus", "--selected_mlus"}, "LIST", why),
          refused({"--gcus", "--dcus", "--iluvatar_gpus", "--custom_devices"}, "LIST", why)};
}

std::vector<CompatOption> elastic() {
  const std::string meet = "elastic jobs need no etcd";
  const std::string range = "give --nnodes=MIN:MAX and --max_restart";
  return {
      {.of = kPaddle,
       .flags = {"--elastic_server"},
       .value = "ADDR",
       .translate = translate_elastic_server},
      {.of = kPaddle,
       .flags = {"--master"},
       .value = "ADDR",
       .translate = translate_etcd_master,
       .when = [](const std::string& value) { return value.starts_with("etcd://"); },
       .late = true},
      refused({"--scale"}, "N", meet, range),
      refused({"--force"}, "BOOL", meet, range),
      refused({"--elastic_pre_hook"}, "COMMAND", "fleetrun runs no program before a restart",
              "do it in the ranks' program"),
  };
}

}  // namespace

std::vector<CompatOption> paddle_options() {
  const std::string heterogeneous = "heterogeneous parameter servers are not supported";
  std::vector<CompatOption> all = {
      refused({"--heter_workers"}, "LIST", heterogeneous),
      refused({"--heter_worker_num"}, "N", heterogeneous),
      refused({"--heter_devices", "--heter_device_num"}, "LIST", heterogeneous),
      {.of = kPaddle,
       .flags = {"--run_mode"},
       .value = "MODE",
       .translate = translate_run_mode,
       .when = [](const std::string& value) { return value == "ps-heter"; }},
      ignored({"--backend"}, "NAME", "the devices determine the transport"),
      ignored({"--legacy"}, "BOOL", "there is one launcher"),
      ignored({"--enable_gpu_log"}, "BOOL", "fleetrun does not log GPUs; see nvidia-smi"),
      refused({"--auto_parallel_config"}, "FILE", "fleetrun has no plan that maps ranks to devices",
              "choose them with --gpus and --nproc_per_node"),
      refused({"--auto_tuner_json"}, "FILE", "fleetrun starts one job and does not tune it",
              "start one fleetrun for each configuration"),
      refused({"--auto_cluster_config"}, "BOOL", "fleetrun does not measure the cluster"),
  };
  for (const auto& more : {devices(), elastic()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace fleet
