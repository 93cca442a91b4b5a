// divide_global_batch(): derives data.batch_size from data.global_batch_size.
#include "base/error.h"
#include "base/text.h"
#include "strategy/strategy.h"
#include "train/job.h"

namespace fleet {
namespace {

constexpr char kGlobal[] = "data.global_batch_size", kOwn[] = "data.batch_size";

[[noreturn]] void refuse_batch(const std::string& what, const std::string& origin,
                               const std::string& next) {
  throw Error(ErrorCode::kUsage, what, origin, next);
}

// The number of ranks that train different samples. A pipeline's ranks share theirs.
int64_t batch_parts_of(const ConfigTree& tree, int64_t ranks) {
  const StrategyProto proto = strategy_from(make_job(tree).strategy);
  return divide(proto, {.ranks = static_cast<int>(ranks)}).data_parallel_degree();
}

}  // namespace

std::string divide_global_batch(ConfigTree& tree, int64_t ranks) {
  const auto given = tree.peek(kGlobal);
  long long samples = 0;
  // make_job() refuses an invalid value later.
  if (!given || !parse_int(*given, &samples) || samples <= 0) return "";
  const std::string origin = tree.origin(kGlobal), of_own = tree.origin(kOwn);
  std::string line;
  if (!of_own.empty() && of_own == origin) {
    refuse_batch(std::string(kGlobal) + " and " + kOwn + " are both given", origin,
                 "set only one of them");
  }
  if (!of_own.empty() && origin != "--set") {
    refuse_batch(
        std::string(kOwn) + " is given together with " + kGlobal, of_own,
        "--set " + std::string(kGlobal) + "=N replaces it, --set " + kGlobal + "=null removes it");
  }
  if (!of_own.empty()) line = std::string(kOwn) + " of " + of_own + " is ignored";
  const int64_t parts = batch_parts_of(tree, ranks);
  if (samples % parts != 0) {
    const std::string who = parts == ranks ? "ranks" : "pipelines";
    refuse_batch(std::string(kGlobal) + " is " + std::to_string(samples) + ", which " +
                     std::to_string(parts) + " " + who + " cannot share equally",
                 origin, "use a multiple of the number of " + who);
  }
  tree.set(kOwn, std::to_string(samples / parts), kGlobal);
  return line;
}

}  // namespace fleet
