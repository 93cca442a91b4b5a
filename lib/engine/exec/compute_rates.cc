#include "exec/compute_rates.h"

#include <algorithm>

namespace fleet {

double ComputeRates::seconds(const OpWork& work, double on) const {
  const double busy = std::max(work.flops / flops, work.bytes / bytes) / on;
  if (on <= 1) return start + busy;
  return start + together + busy + std::min(uneven * busy, uneven_most);
}

double ComputeRates::share(int streams) const {
  return undivided ? std::max(1, parts / streams) : 1.0 * parts / streams;
}

}  // namespace fleet
