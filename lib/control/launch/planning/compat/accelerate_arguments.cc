// The options of accelerate launch that fleetrun has not itself.
#include <algorithm>

#include "base/text.h"
#include "launch/planning/compat/accelerate.h"

namespace fleet {
namespace {

using Type = AccelerateOption::Type;

// One name is misspelled in accelerate, too.
constexpr char kDynamoBackends[] =
    "no,eager,aot_eager,inductor,aot_ts_nvfuser,nvprims_nvfuser,cudagraphs,ofi,fx2trt,onnxrt,"
    "tensorrt,aot_torchxla_trace_once,torhchxla_trace_once,tvm";

bool is_yes(const std::string& text) {
  const std::string word = lower_case(text);
  for (const char* yes : {"y", "yes", "t", "true", "on", "1"}) {
    if (word == yes) return true;
  }
  return false;
}

bool is_no(const std::string& text) {
  const std::string word = lower_case(text);
  for (const char* no : {"n", "no", "f", "false", "off", "0"}) {
    if (word == no) return true;
  }
  return false;
}

}  // namespace

const std::vector<AccelerateOption>& accelerate_arguments() {
  static const std::vector<AccelerateOption> all = {
      {"cpu", Type::kSwitch, "false"},
      {"multi_gpu", Type::kSwitch, "false"},
      {"tpu", Type::kSwitch, "false"},
      {"mixed_precision", Type::kText, "null", "no,fp16,bf16,fp8"},
      {"num_processes", Type::kInteger, "null"},
      {"num_machines", Type::kInteger, "null"},
      {"num_cpu_threads_per_process", Type::kInteger, "null"},
      {"enable_cpu_affinity", Type::kSwitch, "false"},
      {"dynamo_backend", Type::kText, "null", kDynamoBackends},
      {"dynamo_mode", Type::kText, "\"default\"", "default,reduce-overhead,max-autotune"},
      {"dynamo_use_fullgraph", Type::kSwitch, "false"},
      {"dynamo_use_dynamic", Type::kSwitch, "false"},
      {"dynamo_use_regional_compilation", Type::kSwitch, "false"},
      {"use_deepspeed", Type::kSwitch, "false"},
      {"use_fsdp", Type::kSwitch, "false"},
      {"use_parallelism_config", Type::kSwitch, "false"},
      {"use_megatron_lm", Type::kSwitch, "false"},
      {"gpu_ids", Type::kText, "null"},
      {"machine_rank", Type::kInteger, "null"},
      {"main_process_ip", Type::kText, "null"},
      {"main_process_port", Type::kInteger, "null"},
      {"deepspeed_config_file", Type::kText, "null"},
      {"zero_stage", Type::kInteger, "null"},
      {"offload_optimizer_device", Type::kText, "null"},
      {"offload_param_device", Type::kText, "null"},
      {"offload_optimizer_nvme_path", Type::kText, "null"},
      {"offload_param_nvme_path", Type::kText, "null"},
      {"gradient_accumulation_steps", Type::kInteger, "null"},
      {"gradient_clipping", Type::kNumber, "null"},
      {"zero3_init_flag", Type::kText, "null"},
      {"zero3_save_16bit_model", Type::kText, "null"},
      {"deepspeed_hostfile", Type::kText, "null"},
      {"deepspeed_exclusion_filter", Type::kText, "null"},
      {"deepspeed_inclusion_filter", Type::kText, "null"},
      {"deepspeed_multinode_launcher", Type::kText, "null"},
      {"deepspeed_moe_layer_cls_names", Type::kText, "null"},
      {"fsdp_version", Type::kText, "\"1\"", "1,2"},
      {"fsdp_offload_params", Type::kText, "\"false\""},
      {"fsdp_min_num_params", Type::kInteger, "100000000"},
      {"fsdp_sharding_strategy", Type::kText, "\"FULL_SHARD\""},
      {"fsdp_reshard_after_forward", Type::kText, "\"true\""},
      {"fsdp_auto_wrap_policy", Type::kText, "null"},
      {"fsdp_transformer_layer_cls_to_wrap", Type::kText, "null"},
      {"fsdp_backward_prefetch", Type::kText, "null"},
      {"fsdp_state_dict_type", Type::kText, "null"},
      {"fsdp_forward_prefetch", Type::kText, "\"false\""},
      {"fsdp_use_orig_params", Type::kText, "\"true\""},
      {"fsdp_cpu_ram_efficient_loading", Type::kText, "\"true\""},
      {"fsdp_sync_module_states", Type::kText, "\"true\""},
      {"fsdp_activation_checkpointing", Type::kText, "\"false\""},
      {"fsdp_activation_checkpointing_offload", Type::kText, "\"false\""},
      {"megatron_lm_tp_degree", Type::kInteger, "1"},
      {"megatron_lm_use_custom_fsdp", Type::kTruth, "false"},
      {"megatron_lm_no_load_optim", Type::kTruth, "false"},
      {"megatron_lm_eod_mask_loss", Type::kTruth, "false"},
      {"megatron_lm_overlap_cpu_optimizer_d2h_h2d", Type::kTruth, "false"},
      {"megatron_lm_no_save_optim", Type::kTruth, "false"},
      {"megatron_lm_optimizer_cpu_offload", Type::kTruth, "false"},
      {"megatron_lm_use_precision_aware_optimizer", Type::kTruth, "false"},
      {"megatron_lm_decoder_last_pipeline_num_layers", Type::kInteger, "null"},
      {"megatron_lm_pp_degree", Type::kInteger, "1"},
      {"megatron_lm_num_micro_batches", Type::kInteger, "null"},
      {"megatron_lm_sequence_parallelism", Type::kText, "null"},
      {"megatron_lm_recompute_activations", Type::kText, "null"},
      {"megatron_lm_use_distributed_optimizer", Type::kText, "null"},
      {"megatron_lm_gradient_clipping", Type::kNumber, "1.0"},
      {"megatron_lm_recompute_granularity", Type::kText, "null"},
      {"megatron_lm_recompute_method", Type::kText, "null"},
      {"megatron_lm_recompute_num_layers", Type::kInteger, "null"},
      {"megatron_lm_attention_backend", Type::kText, "null"},
      {"megatron_lm_expert_model_parallel_size", Type::kInteger, "null"},
      {"megatron_lm_context_parallel_size", Type::kInteger, "null"},
      {"megatron_lm_attention_dropout", Type::kNumber, "null"},
      {"megatron_lm_hidden_dropout", Type::kNumber, "null"},
      {"megatron_lm_attention_softmax_in_fp32", Type::kText, "null"},
      {"megatron_lm_expert_tensor_parallel_size", Type::kInteger, "null"},
      {"megatron_lm_calculate_per_token_loss", Type::kText, "null"},
      {"megatron_lm_use_rotary_position_embeddings", Type::kText, "null"},
      {"fp8_backend", Type::kText, "null", "ao,te,msamp"},
      {"fp8_use_autocast_during_eval", Type::kSwitch, "false"},
      {"fp8_margin", Type::kInteger, "0"},
      {"fp8_interval", Type::kInteger, "1"},
      {"fp8_format", Type::kText, "\"HYBRID\"", "HYBRID,E4M3,E5M2"},
      {"fp8_amax_history_len", Type::kInteger, "1024"},
      {"fp8_amax_compute_algo", Type::kText, "\"most_recent\"", "max,most_recent"},
      {"fp8_override_linear_precision", Type::kText, "[false, false, false]"},
      {"fp8_opt_level", Type::kText, "\"O2\"", "O1,O2"},
      {"fp8_enable_fsdp_float8_all_gather", Type::kBinary, "1"},
      {"fp8_pad_inner_dim", Type::kBinary, "1"},
      {"debug", Type::kSwitch, "false"},
      {"mpirun_hostfile", Type::kText, "null"},
      {"parallelism_config_dp_replicate_size", Type::kInteger, "1"},
      {"parallelism_config_dp_shard_size", Type::kInteger, "1"},
      {"parallelism_config_tp_size", Type::kInteger, "1"},
      {"parallelism_config_cp_size", Type::kInteger, "1"},
      {"parallelism_config_cp_backend", Type::kText, "\"torch\"", "torch"},
      {"parallelism_config_cp_comm_strategy", Type::kText, "\"allgather\""},
      {"parallelism_config_sp_size", Type::kInteger, "1"},
      {"parallelism_config_sp_backend", Type::kText, "\"deepspeed\"", "deepspeed"},
      {"parallelism_config_sp_seq_length", Type::kText, "null"},
      {"parallelism_config_sp_seq_length_is_variable", Type::kTruth, "true"},
      {"parallelism_config_sp_attn_implementation", Type::kText, "\"sdpa\""},
  };
  return all;
}

std::optional<Json> read_accelerate_value(const AccelerateOption& option, const std::string& text) {
  const std::vector<std::string> choices = split(option.choices, ',');
  if (!choices.empty() && std::ranges::find(choices, text) == choices.end()) return std::nullopt;
  long long integer = 0;
  double number = 0;
  switch (option.type) {
    case Type::kSwitch:
      return text == "true";
    case Type::kTruth:
      return !text.empty();
    case Type::kBinary:
      if (!is_yes(text) && !is_no(text)) return std::nullopt;
      return is_yes(text) ? 1 : 0;
    case Type::kInteger:
      if (!parse_int(text, &integer)) return std::nullopt;
      return integer;
    case Type::kNumber:
      if (!parse_double(text, &number)) return std::nullopt;
      return number;
    case Type::kText:
      break;
  }
  return text;
}

AccelerateArguments initial_arguments() {
  AccelerateArguments arguments;
  for (const AccelerateOption& option : accelerate_arguments()) {
    arguments[option.name] = Json::parse(option.initial);
  }
  arguments["deepspeed_fields"] = "";
  return arguments;
}

bool is_true(const AccelerateArguments& arguments, const std::string& name) {
  const auto found = arguments.find(name);
  return found != arguments.end() && found->second == Json(true);
}

}  // namespace fleet
