// Options of Paddle's launchers without a counterpart here; the others are in launch/options.
#include "launch/planning/compat/line.h"

namespace fleet {
namespace {

constexpr char kDevices[] = "fleetrun supports NVIDIA GPUs (--gpus) and CPUs";
constexpr char kBuiltIn[] = "the rendezvous is built in and needs no etcd";

// Without etcd, nodes need another rendezvous address.
void translate_elastic_server(const std::string&, CompatLine& line) {
  if (line.own_option("master") || line.own_option("ips")) return line.ignore(kBuiltIn);
  line.refuse_without_correction(kBuiltIn,
                                 "give every node the same --master=ADDRESS:PORT of one of them");
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
  line.refuse_without_correction("heterogeneous parameter servers are not supported",
                                 "the modes are collective and ps");
}

}  // namespace

CompatGroup paddle_options() {
  CompatGroup group("Paddle");
  group.abbreviates = true;
  group.translated({"--run_mode"}, "MODE", translate_run_mode).when = [](const std::string& mode) {
    return mode == "ps-heter";
  };
  group.ignored({"--legacy"}, "BOOL", "there is one launcher");
  group.ignored({"--enable_gpu_log"}, "BOOL", "fleetrun does not log GPUs; see nvidia-smi");
  group.refused({"--auto_parallel_config"}, "FILE",
                "fleetrun has no plan that maps ranks to devices",
                "choose them with --gpus and --nproc_per_node");
  group.refused({"--auto_tuner_json"}, "FILE", "fleetrun starts one job and does not tune it",
                "start one fleetrun for each configuration");
  group.refused({"--auto_cluster_config"}, "BOOL", "fleetrun does not measure the cluster");
  group.refused({"--xpus", "--npus"}, "LIST", kDevices);
  CompatOption& master = group.translated({"--master"}, "ADDR", translate_etcd_master);
  master.when = [](const std::string& value) { return value.starts_with("etcd://"); };
  master.late = true;
  for (const char* flag : {"--rank",          "--log_level",       "--log_overwrite",
                           "--sort_ip",       "--nnodes",          "--nproc_per_node",
                           "--log_dir",       "--job_id",          "--host",
                           "--ips",           "--start_port",      "--servers",
                           "--trainers",      "--trainer_num",     "--server_num",
                           "--gloo_port",     "--with_gloo",       "--max_restart",
                           "--elastic_level", "--elastic_timeout", "--help"}) {
    group.also({flag});
  }
  group.also({"--devices", "--gpus", "--selected_gpus"});
  return group;
}

// Options that newer launchers of Paddle no longer have.
CompatGroup older_paddle_options() {
  const std::string heterogeneous = "heterogeneous parameter servers are not supported";
  CompatGroup group("Paddle");
  group.refused({"--heter_workers", "--heter_devices", "--heter_device_num"}, "LIST",
                heterogeneous);
  group.refused({"--heter_worker_num"}, "N", heterogeneous);
  group.ignored({"--backend"}, "NAME", "the devices determine the transport");
  group.refused({"--selected_xpus", "--selected_npus", "--ascend_npus", "--mlus", "--selected_mlus",
                 "--gcus", "--dcus", "--iluvatar_gpus", "--custom_devices"},
                "LIST", kDevices);
  group.translated({"--elastic_server"}, "ADDR", translate_elastic_server);
  group.refused({"--scale"}, "N", "elastic jobs need no etcd",
                "give --nnodes=MIN:MAX and --max_restart");
  group.refused({"--force"}, "BOOL", "elastic jobs need no etcd",
                "give --nnodes=MIN:MAX and --max_restart");
  group.refused({"--elastic_pre_hook"}, "COMMAND", "fleetrun runs no program before a restart",
                "do it in the ranks' program");
  return group;
}

}  // namespace fleet
