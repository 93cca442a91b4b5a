// Which samples make up which batch: pure arithmetic. The global batch b of epoch e is positions
// [b*G, (b+1)*G) of one permutation that depends on (seed, epoch) only, G = batch size of a rank x
// ranks; rank r takes its r-th part. So for one G every number of ranks trains on the same batches.
#pragma once

#include <cstdint>
#include <memory>
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
  // The samples of each class: an epoch is then as many draws with replacement, each of a class
  // that is as likely as the others and of one of its samples. Null: every sample comes once.
  std::shared_ptr<const std::vector<std::vector<int64_t>>> classes = nullptr;
};

struct Pick {
  int64_t sample;
  bool real;     // false: padding, to weigh nothing in metrics
  int64_t draw;  // what its random draws are keyed by: no two of an epoch have the same
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
  Pick pick(int64_t batch, int64_t i) const {
    return at((batch * options_.ranks + options_.rank) * options_.batch + i);
  }
  // The same by its position in the epoch, from 0, of any rank: global batch b has [b*G, (b+1)*G).
  Pick at(int64_t position) const;
  int64_t global_batch() const { return options_.batch * options_.ranks; }  // G

 private:
  void draw_classes(uint64_t key);

  SamplerOptions options_;
  int64_t batches_ = 0, epoch_ = 0;
  std::vector<int64_t> order_;  // empty: the source's order
};

}  // namespace fleet::data
