#include "strategy/server_mode.h"

#include <algorithm>

#include "base/error.h"
#include "strategy/fields.h"

namespace fleet {
namespace {

constexpr char kConfigs[] = "a_sync_configs.";

struct Variable {
  const char *name, *usual, *reason;
};
constexpr Variable kVariables[] = {
    {"FLAGS_communicator_is_sgd_optimizer", "1",
     "gradients of other rules are pushed like those of sgd"},
    {"FLAGS_rpc_retry_times", "3", "a connection that is lost ends the job"},
    {"FLAGS_worker_update_interval_secs", "900",
     "a lost trainer is noticed by its connection; comm.timeout bounds the other waits"},
    {"FLAGS_LAUNCH_BARRIER", "1", "trainers always wait until every server answers"}};

[[noreturn]] void refuse(ErrorCode code, const std::string& what, const std::string& next) {
  throw Error(code, what, "strategy", next);
}

void require_at_least(int value, int least, const std::string& field) {
  if (value >= least) return;
  refuse(ErrorCode::kUsage, kConfigs + field + " is " + std::to_string(value),
         "set it to " + std::to_string(least) + " or more");
}

// Values that fleetrun does not support.
void check_unsupported(const paddle::fleet::AsyncConfig& configs) {
  const paddle::fleet::AsyncConfig defaults;
  const auto refuse_unless = [](bool usual, const std::string& field, const std::string& reason) {
    if (usual) return;
    refuse(ErrorCode::kUnsupported, kConfigs + field + ": " + reason, "leave it at its default");
  };
  refuse_unless(configs.heter_worker_device_guard() == defaults.heter_worker_device_guard(),
                "heter_worker_device_guard", "heterogeneous trainers are not supported");
  refuse_unless(configs.use_ps_gpu() == 0, "use_ps_gpu",
                "parameter servers on GPUs are not supported");
  refuse_unless(configs.use_gpu_graph() == 0, "use_gpu_graph",
                "parameter servers on GPUs are not supported");
  refuse_unless(configs.lr_decay_steps() == defaults.lr_decay_steps(), "lr_decay_steps",
                "the learning_rate section of the job decides the rate");
  refuse_unless(!configs.runtime_split_send_recv(), "runtime_split_send_recv",
                "parameters are divided into blocks at the start");
  refuse_unless(configs.launch_barrier(), "launch_barrier",
                "trainers always wait until every server answers");
}

// The mode, and the keys that decide it.
void choose_mode(const StrategyProto& proto, ServerSettings* settings) {
  const int steps = proto.a_sync_configs().k_steps();
  const bool geo = steps > 0;
  if (geo && proto.has_a_sync() && !proto.a_sync()) {
    refuse(ErrorCode::kUsage,
           "a_sync is false, but a_sync_configs.k_steps is " + std::to_string(steps),
           "set k_steps to 0 for synchronous updates, or a_sync to true for geo");
  }
  if (proto.has_a_sync() && proto.a_sync() && proto.a_sync_configs().has_k_steps() && steps < 0) {
    refuse(ErrorCode::kUsage,
           "a_sync is true, but a_sync_configs.k_steps is " + std::to_string(steps) +
               ", with which Paddle uses no parameter servers",
           "set k_steps to 0 for async, or remove a_sync for synchronous updates");
  }
  if (geo) {
    settings->mode = ServerMode::kGeo;
    settings->geo_steps = steps;
    settings->why = "strategy.a_sync_configs.k_steps is " + std::to_string(steps);
  } else if (proto.has_a_sync()) {
    settings->mode = proto.a_sync() ? ServerMode::kAsync : ServerMode::kSync;
    settings->why = std::string("strategy.a_sync is ") + (proto.a_sync() ? "true" : "false");
  } else {
    settings->why = "strategy.a_sync is not set";
  }
}

}  // namespace

const char* name_of(ServerMode mode) {
  switch (mode) {
    case ServerMode::kSync:
      return "sync";
    case ServerMode::kAsync:
      return "async";
    case ServerMode::kGeo:
      return "geo";
  }
  return "";
}

std::string ServerSettings::text() const {
  return std::string(name_of(mode)) + (why.empty() ? "" : " (" + why + ")");
}

ServerSettings server_settings(const StrategyProto& proto) {
  const paddle::fleet::AsyncConfig& configs = proto.a_sync_configs();
  check_unsupported(configs);
  require_at_least(configs.k_steps(), -1, "k_steps");
  require_at_least(configs.max_merge_var_num(), 1, "max_merge_var_num");
  require_at_least(configs.send_queue_size(), 1, "send_queue_size");
  require_at_least(configs.send_wait_times(), 1, "send_wait_times");
  require_at_least(configs.min_send_grad_num_before_recv(), 1, "min_send_grad_num_before_recv");
  require_at_least(configs.thread_pool_size(), 1, "thread_pool_size");
  require_at_least(configs.max_staleness(), -1, "max_staleness");
  ServerSettings settings{.merged_pushes = configs.max_merge_var_num(),
                          .queue_size = configs.send_queue_size(),
                          .queue_waits = configs.send_wait_times(),
                          .independent_pulls = configs.independent_recv_thread(),
                          .pushes_before_pull = configs.min_send_grad_num_before_recv(),
                          .max_staleness = configs.max_staleness()};
  choose_mode(proto, &settings);
  return settings;
}

std::vector<std::string> unread_server_fields(const StrategyProto& proto, ServerMode mode) {
  std::vector<std::string> fields = {kConfigs + std::string("thread_pool_size")};
  const std::vector<const char*> of_async = {"max_merge_var_num", "send_queue_size",
                                             "send_wait_times",   "independent_recv_thread",
                                             "max_staleness",     "min_send_grad_num_before_recv"};
  if (mode != ServerMode::kAsync) {
    for (const char* field : of_async) fields.push_back(kConfigs + std::string(field));
  } else if (!proto.a_sync_configs().independent_recv_thread()) {
    fields.push_back(kConfigs + std::string("min_send_grad_num_before_recv"));
  }
  fields = given_fields(proto, fields);
  std::erase_if(fields, [&](const std::string& path) {
    const std::string field = path.substr(std::string(kConfigs).size());
    const auto* descriptor = paddle::fleet::AsyncConfig::descriptor()->FindFieldByName(field);
    return is_default(proto.a_sync_configs(), *descriptor);
  });
  return fields;
}

bool is_server_variable(const std::string& name) {
  return std::ranges::any_of(kVariables, [&](const Variable& one) { return name == one.name; });
}

void check_server_variables(
    const std::function<std::optional<std::string>(const std::string&)>& variable) {
  for (const auto& [name, usual, reason] : kVariables) {
    const auto value = variable(name);
    if (!value || *value == usual || *value == "true" || *value == "True") continue;
    throw Error(ErrorCode::kUnsupported, "'" + *value + "' is not supported: " + reason,
                std::string("environment ") + name, "unset it");
  }
}

}  // namespace fleet
