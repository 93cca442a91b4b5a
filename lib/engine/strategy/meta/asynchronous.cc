#include "base/log.h"
#include "base/text.h"
#include "strategy/fields.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// Paddle's scripts for collective training set them too: its setter of a_sync also fills
// a_sync_configs.
FLEET_META_OPTIMIZER(asynchronous) {
  def.help = "settings of parameter servers: no effect in collective training";
  def.fields = {"a_sync", "a_sync_configs"};
  def.create = [fields = def.fields](const StrategyProto& proto,
                                     const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    const std::vector<std::string> given = given_fields(proto, fields);
    if (!given.empty()) {
      spdlog::debug("strategy: {}: setting of parameter servers, no effect in collective training",
                    join(given, ", "));
    }
    return nullptr;
  };
  for (const char* field :
       {"a_sync", "a_sync_configs.k_steps", "a_sync_configs.max_merge_var_num",
        "a_sync_configs.send_queue_size", "a_sync_configs.independent_recv_thread",
        "a_sync_configs.min_send_grad_num_before_recv", "a_sync_configs.thread_pool_size",
        "a_sync_configs.send_wait_times", "a_sync_configs.runtime_split_send_recv",
        "a_sync_configs.launch_barrier", "a_sync_configs.heter_worker_device_guard",
        "a_sync_configs.lr_decay_steps", "a_sync_configs.use_ps_gpu"}) {
    def.field_help[field] = "setting of parameter servers: no effect in collective training";
  }
  def.field_help["a_sync_configs.use_gpu_graph"] = def.field_help["a_sync"];
  def.when = "never: the options exist for scripts that use parameter servers";
  def.cost = "nothing";
}

}  // namespace fleet
