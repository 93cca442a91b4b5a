// Options of Hugging Face's accelerate launch, which passes most of them to its library in
// environment variables.
#include <algorithm>
#include <cctype>

#include "launch/planning/compat/nodes.h"

namespace fleet {
namespace {

constexpr char kAccelerate[] = "accelerate";

CompatOption variable(std::string flag, std::string value, std::string name) {
  return {.of = kAccelerate,
          .flags = {std::move(flag)},
          .value = std::move(value),
          .translate = [name](const std::string& text, CompatLine& line) {
            line.export_variable(name + "=" + text);
          }};
}

CompatOption another_name(std::string flag, std::string value, std::string key) {
  return {.of = kAccelerate,
          .flags = {std::move(flag)},
          .value = std::move(value),
          .translate = [key](const std::string& text, CompatLine& line) {
            line.set_option(key, text);
          }};
}

CompatOption ignored(std::string flag, std::string value, std::string why) {
  return {.of = kAccelerate,
          .flags = {std::move(flag)},
          .value = std::move(value),
          .ignored = std::move(why)};
}

// --fsdp_state_dict_type X: FSDP_STATE_DICT_TYPE=X.
void add_fsdp(std::vector<CompatOption>* all) {
  all->push_back(variable("--use_fsdp", "", "ACCELERATE_USE_FSDP"));
  for (const char* option :
       {"version", "sharding_strategy", "reshard_after_forward", "offload_params", "min_num_params",
        "auto_wrap_policy", "transformer_layer_cls_to_wrap", "state_dict_type", "forward_prefetch",
        "use_orig_params", "cpu_ram_efficient_loading", "sync_module_states",
        "activation_checkpointing"}) {
    std::string name = std::string("fsdp_") + option;
    const std::string flag = "--" + name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    all->push_back(variable(flag, "VALUE", name));
  }
}

void add_deepspeed(std::vector<CompatOption>* all) {
  all->push_back(variable("--use_deepspeed", "", "ACCELERATE_USE_DEEPSPEED"));
  all->push_back(variable("--deepspeed_config_file", "FILE", "ACCELERATE_DEEPSPEED_CONFIG_FILE"));
  all->push_back(variable("--zero_stage", "N", "ACCELERATE_DEEPSPEED_ZERO_STAGE"));
}

void translate_address(const std::string& address, CompatLine& line) {
  const std::string port = line.value_of("--main_process_port");
  const bool ipv6 = address.find(':') != std::string::npos;
  const std::string host = ipv6 ? "[" + address + "]" : address;
  line.set_option("master", port.empty() ? host : host + ":" + port);
}

void translate_port(const std::string&, CompatLine& line) {
  if (!line.has("--main_process_ip")) line.ignore("a single node takes a free port");
}

void add_job(std::vector<CompatOption>* all) {
  all->push_back({.of = kAccelerate,
                  .flags = {"--num_processes"},
                  .value = "N",
                  .translate = translate_total_ranks,
                  .late = true});
  all->push_back(another_name("--num_machines", "N", "nnodes"));
  all->push_back(another_name("--machine_rank", "N", "rank"));
  all->push_back({.of = kAccelerate,
                  .flags = {"--main_process_ip"},
                  .value = "ADDR",
                  .translate = translate_address});
  all->push_back({.of = kAccelerate,
                  .flags = {"--main_process_port"},
                  .value = "PORT",
                  .translate = translate_port});
  all->push_back({.of = kAccelerate,
                  .flags = {"--gpu_ids"},
                  .value = "LIST",
                  .translate = [](const std::string& ids, CompatLine& line) {
                    if (ids != "all") line.set_option("gpus", ids);
                  }});
  all->push_back({.of = kAccelerate,
                  .flags = {"--config_file"},
                  .value = "FILE",
                  .refused = "only accelerate reads it",
                  .next = "pass its num_processes, num_machines, ... as options, and set "
                          "ACCELERATE_MIXED_PRECISION and similar variables"});
}

}  // namespace

std::vector<CompatOption> accelerate_options() {
  std::vector<CompatOption> all = {
      ignored("--multi_gpu", "", "fleetrun starts one rank per GPU, or --nproc_per_node"),
      ignored("--same_network", "", "nodes only need to reach each other"),
      ignored("--main_training_function", "NAME", "fleetrun starts programs, not functions"),
      ignored("--mpirun_hostfile", "FILE", "fleetrun starts the ranks without MPI"),
      {.of = kAccelerate, .flags = {"--tpu"}, .refused = "fleetrun does not support TPUs"},
      variable("--cpu", "", "ACCELERATE_USE_CPU"),
      variable("--mixed_precision", "TYPE", "ACCELERATE_MIXED_PRECISION"),
      variable("--dynamo_backend", "NAME", "ACCELERATE_DYNAMO_BACKEND"),
      variable("--gradient_accumulation_steps", "N", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"),
      variable("--num_cpu_threads_per_process", "N", "OMP_NUM_THREADS"),
  };
  add_job(&all);
  add_deepspeed(&all);
  add_fsdp(&all);
  return all;
}

}  // namespace fleet
