// Which samples make up which batch: pure arithmetic. The global batch b of epoch e is positions
// [b*G, (b+1)*G) of one permutation that depends on (seed, epoch) only, G = batch size of a rank x
// ranks; rank r takes its r-th part. So for one G every number of ranks trains on the same batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fleet::data {

enum class Tail {
  kPad,   // the last batch is filled up by wrapping around; what fills it up has weight 0
  kDrop,  // what does not fill a batch is left out of this epoch
};
Tail parse_tail(const std::string& text);  // "pad" or "drop"

struct SamplerOptions {
  int64_t samples = 0;  // in the whole set
  int64_t batch = 1;    // of one rank
  int rank = 0, ranks = 1;
  uint64_t seed = 0;
  bool shuffle = true;  // false: in the source's order, each epoch
  Tail tail = Tail::kPad;
};

struct Pick {
  int64_t sample;
  bool real;  // false: padding, to weigh nothing in metrics
};

class Sampler {
 public:
  // kUsage: no samples, or fewer than one global batch with Tail::kDrop.
  explicit Sampler(const SamplerOptions& options);
  // The same on every rank.
  int64_t batches() const { return batches_; }
  int64_t epoch() const { return epoch_; }
  // Makes the permutation of this epoch. Not thread-safe against pick().
  void start_epoch(int64_t epoch);
  // The i-th sample of this rank's part of global batch b in the current epoch. Thread-safe.
  Pick pick(int64_t batch, int64_t i) const;

 private:
  SamplerOptions options_;
  int64_t batches_ = 0, epoch_ = 0;
  std::vector<int64_t> order_;  // empty: the source's order
};

}  // namespace fleet::data
