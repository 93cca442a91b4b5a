#include "launch/options.h"

#include <map>

#include "base/text.h"

namespace fleet {

const std::vector<Option>& launch_options() {
  static const std::vector<Option> options = {
      {"ips", {}, {"PADDLE_IPS"}, "LIST", true},
      {"gpus", {"selected_gpus", "devices"}, {"PADDLE_DEVICES", "PADDLE_GPUS"}, "LIST", true},
      {"nproc_per_node", {}, {"PADDLE_NPROC_PER_NODE"}, "N", true},
      {"host", {}, {"PADDLE_HOST", "POD_IP"}, "ADDR", true},
      {"master", {}, {"PADDLE_MASTER"}, "ADDR:PORT", true},
      {"nnodes", {}, {"PADDLE_NNODES"}, "N", true},
      {"rank", {}, {"PADDLE_RANK"}, "N", true},
      {"start_port", {}, {"PADDLE_START_PORT", "FLAGS_START_PORT"}, "PORT", true},
      {"rdzv_port", {}, {"PADDLE_RDZV_PORT"}, "PORT", true},
      {"rdzv_timeout", {}, {"PADDLE_RDZV_TIMEOUT"}, "SECONDS"},
      {"grace", {}, {"PADDLE_GRACE"}, "SECONDS"},
      {"hang_timeout", {}, {"PADDLE_HANG_TIMEOUT"}, "SECONDS", true},
      {"log_dir", {}, {"PADDLE_LOG_DIR"}, "DIR"},
      {"ranks", {}, {}, "LIST", true},
      {"local_ranks_filter", {}, {}, "LIST", true},
      {"log_level", {}, {"PADDLE_LOG_LEVEL"}, "LEVEL"},
      {"job_id", {}, {"PADDLE_JOB_ID"}, "NAME"},
      {"run_mode", {}, {"PADDLE_RUN_MODE"}, "MODE"},
      {"servers", {}, {"PADDLE_SERVERS_ENDPOINTS"}, "LIST", true},
      {"workers", {"trainers"}, {"PADDLE_TRAINERS_ENDPOINTS"}, "LIST", true},
      {"server_num", {}, {"PADDLE_SERVER_NUM"}, "N", true},
      {"worker_num", {"trainer_num"}, {"PADDLE_TRAINER_NUM"}, "N", true},
      {"with_gloo", {}, {"PADDLE_WITH_GLOO"}, "0|1|2"},
      {"gloo_port", {}, {"PADDLE_GLOO_PORT"}, "PORT", true},
  };
  return options;
}

const Schema& launch_schema() {
  static const Schema schema = [] {
    Schema all;
    all.texts("ips", {}, "the nodes by rank: a,b[01-16],c:4 (4 GPUs), @file")
        .text("gpus", "", "GPUs of this node to use (default: all that are visible)")
        .integer("nproc_per_node", 0, 0, 4096, "ranks on this node (default: one a GPU, or one)")
        .text("host", "", "this node's address, as in --ips")
        .text("master", "", "where the rendezvous is, instead of the first of --ips")
        .integer("nnodes", 0, 0, 65536, "how many nodes, where --ips is not given")
        .integer("rank", -1, -1, 65535, "this node's rank, where --ips is not given")
        .integer("start_port", 0, 0, 65535, "first endpoint port (default: free; nodes: 6070)")
        .integer("rdzv_port", 0, 0, 65535, "the rendezvous's port (default: free; nodes: 6768)")
        .number("rdzv_timeout", 300, 0.001, 1e6, "how long to wait for all nodes")
        .number("grace", 10, 0, 1e6, "from a stop's signal to SIGKILL")
        .number("hang_timeout", 0, 0, 1e6, "a rank that does nothing for so long hangs (off)")
        .text("log_dir", "log", "folder of workerlog.N and endpoints.log")
        .text("ranks", "", "ranks to show, 0,3-5 or all (default: local rank 0 of each node)")
        .text("local_ranks_filter", "", "the same by local ranks")
        .choice("log_level", "INFO", {"DEBUG", "INFO", "WARNING", "ERROR"}, "how much is logged")
        .text("job_id", "default", "tells jobs apart; the same on every node")
        .text("run_mode", "collective", "collective, or ps: parameter servers")
        .texts("servers", {}, "parameter servers, host:port each, on all nodes")
        .texts("workers", {}, "their trainers, host or host:port each")
        .integer("server_num", 0, 0, 4096, "parameter servers on each node, where not listed")
        .integer("worker_num", 0, 0, 4096, "their trainers on each node, where not listed")
        .choice("with_gloo", "1", {"0", "1", "2"}, "whether roles may meet through Gloo")
        .integer("gloo_port", 0, 0, 65535, "where, on the first node (default: as endpoints)");
    return all;
  }();
  return schema;
}

std::string print_options(const Settings& settings) {
  std::string text;
  for (const std::string& line : split(settings.print(), '\n')) {
    const std::string key = line.substr(0, line.find(' '));
    bool absent = false;
    for (const Option& option : launch_options()) {
      absent = absent || (option.key == key && option.optional && !settings.given(key));
    }
    if (!line.empty()) text += (absent ? key + " = none  (default)" : line) + "\n";
  }
  return text;
}

std::string unsupported_reason(const std::string& flag) {
  static const std::map<std::string, std::string> reasons = [] {
    std::map<std::string, std::string> all;
    for (const char* name : {"heter_workers", "heter_worker_num", "heter_devices"}) {
      all[name] = "heterogeneous parameter servers are not supported";
    }
    all["http_port"] = "give the port with --gloo_port";
    for (const char* name : {"elastic_server", "np", "scale", "force", "elastic_pre_hook",
                             "elastic_level", "elastic_timeout", "max_restart", "max_restarts"}) {
      all[name] = "restarting and elastic jobs are not supported yet";
    }
    all["backend"] = "the transport is chosen from where the ranks are, or by the job file";
    all["rdzv_backend"] = "the rendezvous is built in; --master says where it is";
    all["rdzv_endpoint"] = "give the rendezvous's address with --master";
    all["rdzv_id"] = "give the job's name with --job_id";
    all["standalone"] = "a job on one node needs no option for that";
    all["sort_ip"] = "ranks follow the order of --ips";
    all["log_overwrite"] = "logs are appended to; choose another --log_dir";
    return all;
  }();
  const auto found = reasons.find(flag);
  return found == reasons.end() ? std::string() : found->second;
}

std::string launch_version() { return "fleetrun " FLEET_VERSION; }

std::string launch_help() {
  std::string text =
      "usage: fleetrun [options] PROGRAM [arguments of the program]\n"
      "Starts synchronous training: PROGRAM is a job file (.json), a .py, or any program.\n";
  const std::vector<ConfigKey>& keys = launch_schema().keys();
  for (size_t i = 0; i < keys.size(); ++i) {
    const Option& option = launch_options()[i];
    std::string left = "  --" + option.key + " " + option.value;
    left.resize(std::max<size_t>(left.size() + 1, 26), ' ');
    text += left + keys[i].help;
    std::string initial = keys[i].initial->text();
    if (initial.ends_with(".0")) initial.resize(initial.size() - 2);
    if (!option.optional) text += " (default " + initial + ")";
    text += "\n";
  }
  text +=
      "  --print_config          print every value and where it came from, then end\n"
      "  --dry_run               check everything, show what would be started, then end\n"
      "    --format table|json|shell, --rank_env R    how, and only rank R (shell: for eval)\n"
      "  --version, --help\n"
      "Each option has a PADDLE_* twin in the environment; --gpus is also --selected_gpus and\n"
      "--devices. Exit code: the first failing rank's, 128 + its signal; docs/operations.md.\n"
      "examples:\n"
      "  fleetrun --nproc_per_node=2 config/resnet50_imagenet.json --set data.batch_size=64\n"
      "  fleetrun --ips=\"10.0.0.1, 10.0.0.2\" --nproc_per_node=8 job.json   # on every node\n"
      "  fleetrun --nproc_per_node=2 train.py --lr 0.1\n";
  return text;
}

}  // namespace fleet
