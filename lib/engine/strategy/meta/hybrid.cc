#include "base/error.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

constexpr int kAutomatic = -1;  // Paddle's default of dp_degree

// Refuses a degree unless it is what the job does without it.
void check_degree(const char* field, int degree, int own, const std::string& next) {
  if (degree == own) return;
  throw Error(degree < 1 ? ErrorCode::kUsage : ErrorCode::kUnsupported,
              std::string("hybrid_configs.") + field + " is " + std::to_string(degree) +
                  ", this job's is " + std::to_string(own),
              "strategy", "set it to " + std::to_string(own) + ", or remove it" + next);
}

}  // namespace

// Plain data parallelism has all ranks as its degree; a pipeline's stages divide them.
FLEET_META_OPTIMIZER(hybrid) {
  def.help = "degrees of Paddle's hybrid parallelism: checked, and otherwise without effect";
  def.fields = {"hybrid_configs.dp_degree", "hybrid_configs.mp_degree", "hybrid_configs.pp_degree",
                "hybrid_configs.sharding_degree"};
  def.requested = [](const StrategyProto& proto) { return proto.has_hybrid_configs(); };
  def.check = [](const StrategyProto& proto, const PassContext& context) {
    const auto& degrees = proto.hybrid_configs();
    if (degrees.dp_degree() != kAutomatic) {
      check_degree("dp_degree", degrees.dp_degree(), context.data_parallel_degree(),
                   ": it is the number of ranks that train on different samples");
    }
    check_degree("mp_degree", degrees.mp_degree(), 1, ": tensor parallelism is not supported");
    check_degree("pp_degree", degrees.pp_degree(), context.stages,
                 context.stages > 1 ? "" : ": strategy.pipeline makes stages");
    check_degree("sharding_degree", degrees.sharding_degree(), 1,
                 ": strategy.sharding divides states over ranks");
  };
  def.when = "in strategies that were written for Paddle's hybrid parallelism";
  def.cost = "nothing";
}

}  // namespace fleet
