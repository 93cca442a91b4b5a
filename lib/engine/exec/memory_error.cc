#include "exec/memory_error.h"

#include <algorithm>

#include "base/text.h"

namespace fleet {

int64_t largest_batch(int64_t batch, size_t available,
                      const std::function<size_t(int64_t batch)>& bytes_at) {
  int64_t fits = 0, too_large = batch;
  while (too_large - fits > 1) {
    const int64_t middle = fits + (too_large - fits) / 2;
    (bytes_at(middle) <= available ? fits : too_large) = middle;
  }
  return fits;
}

int64_t largest_batch(int64_t batch, size_t available,
                      const std::function<size_t(int64_t batch)>& estimate,
                      const std::function<size_t(int64_t batch)>& bytes_of) {
  size_t beyond = 0;  // the estimate
  while (true) {
    const int64_t fits =
        largest_batch(batch, available, [&](int64_t some) { return estimate(some) + beyond; });
    const size_t needed = fits > 0 ? bytes_of(fits) : 0;
    if (needed <= available) return fits;
    beyond += std::max(needed - available, available / 64 + 1);
  }
}

Error out_of_memory(const Error& cause, const PlannedMemory& planned, int64_t batch,
                    int64_t fitting_batch) {
  const std::string next =
      fitting_batch > 0
          ? "data.batch_size=" + std::to_string(fitting_batch) + " would fit (it is " +
                std::to_string(batch) + ")"
          : "not even data.batch_size=1 would fit: use a smaller model, or stop other "
            "programs on the device";
  return Error(
      ErrorCode::kNoMemory,
      cause.failure() + "; the plan needs " + mebibytes(planned.total()) + ": " + planned.text(),
      cause.where(), next);
}

}  // namespace fleet
