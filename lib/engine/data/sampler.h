// Assigns samples to batches by pure arithmetic. Global batch b of epoch e is positions [b*G,
// (b+1)*G) of one permutation that depends only on (seed, epoch), with G = batch size of a rank x
// ranks; rank r takes its r-th part. So for a given G, any number of ranks trains on the same
// batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fleet::data {

class Source;

enum class Tail {
  kPad,   // the last batch is filled by wrapping around; the added samples have weight 0
  kDrop,  // samples that do not fill a batch are dropped from this epoch
};
Tail parse_tail(const std::string& text);  // "pad" or "drop"

struct SamplerOptions {
  int64_t samples = 0;  // in the whole set
  int64_t batch = 1;    // per rank
  int rank = 0, ranks = 1;
  uint64_t seed = 0;
  bool shuffle = true;  // false: in the source's order in every epoch
  Tail tail = Tail::kPad;
  // Repeated augmentation: each sample comes this number of times in a row, each with its own
  // random draws. An epoch has as many draws as without, so it covers 1 / repeats of the samples.
  int64_t repeats = 1;
  // The samples of each class. If set, an epoch has the same number of draws, with replacement:
  // each draw picks a class uniformly and one of its samples. Null: every sample comes once.
  std::shared_ptr<const std::vector<std::vector<int64_t>>> classes = nullptr;
};

struct Pick {
  int64_t sample;
  bool real;     // false: padding, with weight 0 in metrics
  int64_t draw;  // key of its random draws: unique within an epoch
};

class Sampler {
 public:
  // kUsage: no samples, or fewer than one global batch with Tail::kDrop.
  explicit Sampler(const SamplerOptions& options);
  // Equal on all ranks.
  int64_t batches() const { return batches_; }
  int64_t epoch() const { return epoch_; }
  // Makes the permutation of this epoch. Must not run concurrently with pick().
  void start_epoch(int64_t epoch);
  // The i-th sample of this rank's part of global batch b in the current epoch. Thread-safe.
  Pick pick(int64_t batch, int64_t i) const {
    return at((batch * options_.ranks + options_.rank) * options_.batch + i);
  }
  // The sample before pick(batch, 0) in the global batch; for its first sample, the last one.
  Pick before_first(int64_t batch) const {
    const int64_t global = global_batch();
    return at(batch * global + (options_.rank * options_.batch + global - 1) % global);
  }
  // Like pick(), for any rank, by position in the epoch, from 0: global batch b has [b*G, (b+1)*G).
  Pick at(int64_t position) const;
  int64_t global_batch() const { return options_.batch * options_.ranks; }  // G

 private:
  void draw_classes(uint64_t key);

  SamplerOptions options_;
  int64_t batches_ = 0, epoch_ = 0;
  std::vector<int64_t> order_;  // empty: in the source's order
};

// The samples of `all` at these indices, in this order.
std::unique_ptr<Source> subset_of(std::unique_ptr<Source> all, std::vector<int64_t> indices);

struct Split {
  std::vector<int64_t> train, validation;  // indices, ascending; together they are all samples
};

// Of each class with n samples, round(n x part) are for validation, but at least one if n > 1, and
// never all. The choice depends only on (seed, index). kUsage if no sample is left for validation.
// 0 < part < 1.
Split split_by_class(const Source& source, double part, uint64_t seed);

}  // namespace fleet::data
