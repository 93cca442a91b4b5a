// Options of Hugging Face's accelerate launch, which passes most of them to its library in
// environment variables.
#include "launch/planning/compat/line.h"
#include "launch/planning/secret_names.h"

namespace fleet {
namespace {

// --fsdp_state_dict_type X: FSDP_STATE_DICT_TYPE=X.
void add_fsdp(CompatGroup* group) {
  group->variable("--use_fsdp", "", "ACCELERATE_USE_FSDP");
  for (const char* option :
       {"version", "sharding_strategy", "reshard_after_forward", "offload_params", "min_num_params",
        "auto_wrap_policy", "transformer_layer_cls_to_wrap", "state_dict_type", "forward_prefetch",
        "use_orig_params", "cpu_ram_efficient_loading", "sync_module_states",
        "activation_checkpointing"}) {
    const std::string name = std::string("fsdp_") + option;
    group->variable("--" + name, "VALUE", upper_case(name));
  }
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

}  // namespace

CompatGroup accelerate_options() {
  CompatGroup group("accelerate");
  group.ignored({"--multi_gpu"}, "", "fleetrun starts one rank per GPU, or --nproc_per_node");
  group.ignored({"--same_network"}, "", "nodes only need to reach each other");
  group.ignored({"--main_training_function"}, "NAME", "fleetrun starts programs, not functions");
  group.ignored({"--mpirun_hostfile"}, "FILE", "fleetrun starts the ranks without MPI");
  group.refused({"--tpu"}, "", "fleetrun does not support TPUs");
  group.refused({"--config_file"}, "FILE", "only accelerate reads it",
                "pass its num_processes, num_machines, ... as options, and set "
                "ACCELERATE_MIXED_PRECISION and similar variables");
  group.translated({"--num_processes"}, "N", translate_total_ranks).late = true;
  group.sets({"--num_machines"}, "N", "nnodes");
  group.sets({"--machine_rank"}, "N", "rank");
  group.translated({"--main_process_ip"}, "ADDR", translate_address);
  group.translated({"--main_process_port"}, "PORT", translate_port);
  group.translated({"--gpu_ids"}, "LIST", [](const std::string& ids, CompatLine& line) {
    if (ids != "all") line.set_option("gpus", ids);
  });
  group.variable("--cpu", "", "ACCELERATE_USE_CPU");
  group.variable("--mixed_precision", "TYPE", "ACCELERATE_MIXED_PRECISION");
  group.variable("--dynamo_backend", "NAME", "ACCELERATE_DYNAMO_BACKEND");
  group.variable("--gradient_accumulation_steps", "N", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS");
  group.variable("--num_cpu_threads_per_process", "N", "OMP_NUM_THREADS");
  group.variable("--use_deepspeed", "", "ACCELERATE_USE_DEEPSPEED");
  group.variable("--deepspeed_config_file", "FILE", "ACCELERATE_DEEPSPEED_CONFIG_FILE");
  group.variable("--zero_stage", "N", "ACCELERATE_DEEPSPEED_ZERO_STAGE");
  add_fsdp(&group);
  return group;
}

}  // namespace fleet
