// divide_global_batch(): data.global_batch_size to data.batch_size.
#include "base/error.h"
#include "base/text.h"
#include "train/job.h"

namespace fleet {
namespace {

constexpr char kGlobal[] = "data.global_batch_size", kOwn[] = "data.batch_size";

[[noreturn]] void refuse(const std::string& what, const std::string& origin,
                         const std::string& next) {
  throw Error(ErrorCode::kUsage, what, origin, next);
}

}  // namespace

std::string divide_global_batch(ConfigTree& tree, int64_t ranks) {
  const auto given = tree.peek(kGlobal);
  long long samples = 0;
  // A value that is none of the key's is refused where the job is made.
  if (!given || !parse_int(*given, &samples) || samples <= 0) return "";
  const std::string origin = tree.origin(kGlobal), of_own = tree.origin(kOwn);
  std::string line;
  if (!of_own.empty() && of_own == origin) {
    refuse(std::string(kGlobal) + " and " + kOwn + " are both given", origin, "set one of both");
  }
  if (!of_own.empty() && origin != "--set") {
    refuse(std::string(kOwn) + " is given beside " + kGlobal, of_own,
           "--set " + std::string(kGlobal) + "=N sets the other one, --set " + kGlobal +
               "=null removes it");
  }
  if (!of_own.empty()) line = std::string(kOwn) + " of " + of_own + " is left out";
  if (samples % ranks != 0) {
    refuse(std::string(kGlobal) + " is " + std::to_string(samples) + ", which " +
               std::to_string(ranks) + " ranks cannot share equally",
           origin, "give a multiple of the number of ranks");
  }
  tree.set(kOwn, std::to_string(samples / ranks), kGlobal);
  return line;
}

}  // namespace fleet
