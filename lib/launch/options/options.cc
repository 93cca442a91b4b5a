#include "launch/options.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "launch/options/group.h"

namespace fleet {

namespace {

const std::vector<OptionGroup>& groups() {
  static const std::vector<OptionGroup> all = {
      start_options(), via_options(),      supervise_options(), log_options(),
      check_options(), security_options(), role_options()};
  return all;
}

// "  --gpus LIST             GPUs of ..."
std::string help_line(const Option& option, const ConfigKey& key) {
  std::string left = "  --" + option.key + (option.is_flag() ? "" : " " + option.value);
  left.resize(std::max<size_t>(left.size() + 1, 26), ' ');
  std::string initial = key.initial->text();
  if (initial.ends_with(".0")) initial.resize(initial.size() - 2);
  const bool shown = !option.optional && !option.is_flag();
  return left + key.help + (shown ? " (default " + initial + ")" : "") + "\n";
}

}  // namespace

std::vector<std::string> Option::flags() const {
  std::vector<std::string> all = {"--" + key};
  for (const std::string& alias : aliases) all.push_back((alias.size() == 1 ? "-" : "--") + alias);
  return all;
}

const std::vector<Option>& launch_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> all;
    for (const OptionGroup& group : groups()) {
      all.insert(all.end(), group.options().begin(), group.options().end());
    }
    return all;
  }();
  return options;
}

const Schema& launch_schema() {
  static const Schema schema = [] {
    Schema all;
    for (const OptionGroup& group : groups()) all.section("", group.schema());
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
    for (const char* name : {"elastic_server", "np", "scale", "force"}) {
      all[name] = "elastic jobs need no etcd: give --nnodes=MIN:MAX and --max_restart";
    }
    all["elastic_pre_hook"] = "no program is run before a restart; do it in the ranks' program";
    all["backend"] = "the transport is chosen from where the ranks are, or by the job file";
    all["rdzv_backend"] = "the rendezvous is built in; --master says where it is";
    all["rdzv_endpoint"] = "give the rendezvous's address with --master";
    all["rdzv_id"] = "give the job's name with --job_id";
    all["standalone"] = "a job on one node needs no option for that";
    all["sort_ip"] = "ranks follow the order of --ips";
    return all;
  }();
  const auto found = reasons.find(flag);
  return found == reasons.end() ? std::string() : found->second;
}

std::string launch_version() { return "fleetrun " FLEET_VERSION; }

std::string launch_help(bool all) {
  std::string text =
      "usage: fleetrun [options] PROGRAM [arguments of the program]\n"
      "Starts synchronous training: PROGRAM is a job file (.json), a .py, or any program.\n";
  std::string group;
  for (size_t i = 0; i < launch_options().size(); ++i) {
    const Option& option = launch_options()[i];
    if (!all && !option.common) continue;
    if (all && option.group != group) text += option.group + ":\n";
    group = option.group;
    text += help_line(option, launch_schema().keys()[i]);
  }
  return text + help_tail();
}

std::string help_tail() {
  return "  --print_config          print every value and where it came from, then end\n"
         "  --dry_run               check everything, show what would be started, then end\n"
         "    --format table|json|shell, --rank_env R    how, and only rank R (shell: for eval)\n"
         "  --version, --help, --help all (every option)\n"
         "Options have PADDLE_* twins in the environment; --gpus is also --selected_gpus and\n"
         "--devices. Exit code: the first failing rank's, 128 + its signal; docs/operations.md.\n"
         "examples:\n"
         "  fleetrun --nproc_per_node=2 config/resnet50_imagenet.json --set data.batch_size=64\n"
         "  fleetrun --ips=\"10.0.0.1, 10.0.0.2\" --nproc_per_node=8 job.json   # on every node\n"
         "  fleetrun --nproc_per_node=2 train.py --lr 0.1\n";
}

}  // namespace fleet
