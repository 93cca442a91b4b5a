// The error of a job that does not fit into its device's memory.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/log.h"
#include "exec/memory_error.h"
#include "tensor/caching_allocator.h"
#include "train/device_prefetcher.h"
#include "train/job_facts.h"
#include "train/session.h"

namespace fleet {

// The memory of a job with this Plan: each of the executor's regions and the prefetcher's slots,
// rounded up to whole pieces if the device allocates memory so.
static size_t bytes_taken(const Plan& plan, const Device& device) {
  std::vector<size_t> regions = plan.workspace_bytes;
  regions.insert(regions.end(), {plan.persistent_bytes, plan.arena_bytes});
  regions.insert(regions.end(), plan.bucket_bytes.begin(), plan.bucket_bytes.end());
  if (!device.runs_beside_host()) return std::accumulate(regions.begin(), regions.end(), size_t{0});
  constexpr size_t kPadding = 4096;  // between a slot's feeds
  regions.insert(regions.end(), DevicePrefetcher::kDepth, plan.memory().feeds + kPadding);
  constexpr size_t kPiece = CachingAllocator::kPiece;
  size_t bytes = 0;
  for (size_t region : regions) bytes += (region + kPiece - 1) / kPiece * kPiece;
  return bytes;
}

// A host does not report its memory as a device.
static size_t bytes_available(const Device& device) {
  const size_t available = device.memory().available;
  return available > 0 ? available : available_host_memory();
}

// The memory of the job with another batch. length: tokens of a row; 0: the job's. on: null to plan
// without the device. Errors of build_program() and plan_program().
size_t Session::bytes_with_batch(int64_t batch, int64_t length, const Job& job, Device& device,
                                 Device* on) const {
  ProgramOptions options = options_;
  options.batch = batch;
  if (length > 0) {
    options.columns = at_length(options.columns, length);
  }
  BuiltProgram built = build_program(job, options);
  return bytes_taken(plan_built(built, options.backend, on), device);
}

// The longest rows of tokens, halved again and again, with which the batch would fit; 0: none.
int64_t Session::fitting_length(int64_t batch, const Job& job, Device& device) const {
  constexpr int64_t kShortest = 16;
  if (!job.data.has("sequence_length")) return 0;
  const size_t available = bytes_available(device);
  for (int64_t length = job.data.integer("sequence_length") / 2; length >= kShortest; length /= 2) {
    try {
      if (bytes_with_batch(batch, length, job, device, &device) <= available) return length;
    } catch (const Error&) {  // such a batch cannot be planned
    }
  }
  return 0;
}

// Plans smaller batches to find the size that would fit: at first without the device, which takes
// longer and knows the workspace of its library's algorithms.
void Session::explain_no_memory(const Error& cause, const PlannedMemory& planned, const Job& job,
                                Device& device) {
  const Silence silence;                                    // passes have logged once
  const int64_t unit = strategy_->context().micro_batches;  // a batch is divided into so many
  const int64_t batch = job.data.integer("batch_size");
  std::string obstacle;  // why the last batch that cannot be planned cannot
  const auto bytes_of = [&](int64_t units, Device* on) {
    try {
      return bytes_with_batch(units * unit, 0, job, device, on);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNoMemory) {
        obstacle =
            "; a batch of " + std::to_string(units * unit) + " cannot be planned: " + error.what();
      }
      return std::numeric_limits<size_t>::max() / 2;
    }
  };
  const int64_t fits = largest_batch(
      batch / unit, bytes_available(device), [&](int64_t some) { return bytes_of(some, nullptr); },
      [&](int64_t some) { return bytes_of(some, &device); });
  const Error error = out_of_memory(cause, planned, batch, fits * unit);
  const int64_t tried = fits > 0 ? batch : unit;
  if (const int64_t length = fitting_length(tried, job, device); length > 0) {
    const std::string shorter = "data.sequence_length=" + std::to_string(length) + " (it is " +
                                std::to_string(job.data.integer("sequence_length")) + ")";
    throw Error(error.code(), error.failure(), error.where(),
                fits > 0
                    ? error.next() + ", and so would " + shorter
                    : shorter + " with data.batch_size=" + std::to_string(tried) + " would fit");
  }
  if (fits > 0 || obstacle.empty()) throw error;
  throw Error(error.code(), error.failure() + obstacle, error.where(),
              "use a smaller model, or stop other programs on the device");
}

}  // namespace fleet
