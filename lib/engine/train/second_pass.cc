#include "train/second_pass.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/log.h"
#include "optim/sam.h"

namespace fleet {

// Applies train.sam. The second pass begins when the gradients of the whole update are known.
void append_second_pass(const Job& job, int rank, const BackwardResult& backward,
                        BuiltProgram* built) {
  const double rho = job.train.number("sam.rho");
  if (rho == 0) return;
  const auto refuse = [](const std::string& what, const std::string& why, const std::string& key) {
    throw Error(ErrorCode::kUsage, "cannot be combined with " + what + ", where " + why,
                "train.sam.rho", "set it to 0, or remove " + key);
  };
  const std::vector<std::string>& acting = built->strategy->names();
  for (const auto& [strategy, why] : std::initializer_list<std::pair<const char*, const char*>>{
           {"gradient_merge", "the second pass would need all batches of an update again"},
           {"pipeline", "the second pass would need all micro-batches of an update again"},
           {"sharding", "each rank has the gradients of its own part only"},
           {"reduce", "each rank has the gradients of its own part only"},
           {"localsgd", "each rank has its own weights between two averages"},
           {"adaptive_localsgd", "each rank has its own weights between two averages"},
           {"dgc", "ranks exchange parts of the gradients only"}}) {
    const bool acts = std::ranges::find(acting, strategy) != acting.end();
    const bool mode = std::string(strategy) == "reduce";
    const std::string key = mode ? "build_strategy.reduce_strategy" : strategy;
    if (acts) refuse(strategy, why, "strategy." + key);
  }
  if (built->strategy->context().servers > 0) {
    refuse("parameter servers", "trainers do not change weights", "the servers");
  }
  if (built->strategy->context().weights != DType::kFloat32) {
    refuse("weights in bfloat16", "so small a step is lost", "train.weights_dtype");
  }
  append_sam(built->program, backward.section, backward.loss_scaling,
             {.rho = rho, .adaptive = job.train.boolean("sam.adaptive")});
  if (rank == 0) {
    spdlog::info("sharpness-aware minimisation: each step makes two passes (train.sam.rho {:g})",
                 rho);
  }
}

}  // namespace fleet
