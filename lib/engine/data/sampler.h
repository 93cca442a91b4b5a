// Assigns samples to batches by pure arithmetic. Global batch b of epoch e is positions [b*G,
// (b+1)*G) of one permutation that depends only on (seed, epoch), with G = batch size of a rank x
// ranks; rank r takes its r-th part. So for a given G, any number of ranks trains on the same
// batches.
//
// By length: the permutation is cut into windows of kLengthWindow global batches, each sorted by
// the length classes of its samples (in the order of the permutation within a class), and then all
// global batches of the epoch are put into a random order. Samples that do not fill a global batch
// come last, unsorted. Without shuffling, all samples are sorted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/permutation.h"

namespace fleet::data {

class Source;

enum class Tail {
  kPad,   // the last batch is filled by wrapping around; the added samples have weight 0
  kDrop,  // samples that do not fill a batch are dropped from this epoch
};
Tail parse_tail(const std::string& text);  // "pad" or "drop"

inline constexpr int64_t kLengthWindow = 256;  // global batches
inline constexpr int64_t kStoredOrder = int64_t{1} << 27;

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
  // By sample: its length class (data/lengths.h), for batches by length. Null: all have one length.
  // Not together with repeats.
  std::shared_ptr<const std::vector<uint8_t>> lengths = nullptr;
  // The order of more samples than this is computed for each of them, in no memory. Not with
  // classes and lengths, whose orders are always stored.
  int64_t stored_order = kStoredOrder;
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
  // The largest length class in global batch b, with the samples that pad it: equal on all ranks. 0
  // without length classes. Thread-safe.
  int length_class(int64_t batch) const;

 private:
  void draw_classes(uint64_t key);
  void sort_by_length(int64_t begin, int64_t end);
  void group_by_length(uint64_t key);

  SamplerOptions options_;
  int64_t batches_ = 0, epoch_ = 0;
  std::vector<int64_t> order_;                   // empty: by permutation_
  std::optional<Permutation> permutation_ = {};  // none: in the source's order
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
