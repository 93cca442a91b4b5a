// Updates of many parameters in one go: what the kernels of sgd, momentum and adam share.
#pragma once

#include <vector>

#include "backend/cpu/elementwise.h"
#include "optim/update_op.h"

namespace fleet::cpu {

// Every group in one layout: the first that a member has.
void update_layouts(LayoutQuery& query);

// The parameters of one update operation, cut into chunks that threads share. Elementwise rules
// give the same bits however parameters are merged into operations.
class UpdateChunks {
 public:
  static constexpr int kMaxStates = 2;
  // A stretch of a parameter with its gradient in float32: what a rule works on.
  struct Stretch {
    float* parameter;
    const float* gradient;
    float* states[kMaxStates];
    int64_t count;
    int tensor;  // which parameter of the operation
  };
  // Sums over the elements of one parameter.
  struct Sums {
    double first = 0, second = 0;
  };

  explicit UpdateChunks(const KernelContext& context);

  // Calls rule(stretch) until all elements are done, unless an overflow was found; parameters go to
  // their copies.
  template <typename Rule>
  void run(const Rule& rule) const {
    const bool skipped = found_inf_ && *found_inf_ != 0;
    if (skipped && !has_copies()) return;
    const int64_t count = static_cast<int64_t>(chunks_.size());
#pragma omp parallel for if (elements_ >= kParallelElements)
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t at = 0; at < chunks_[i].count; at += kTile) {
        alignas(64) float widened[kTile];
        const Stretch stretch = stretch_at(chunks_[i], at, widened);
        if (!skipped) rule(stretch);
        write_copy(chunks_[i], at, stretch);
      }
    }
  }

  // For rules that need sums over a whole parameter before they change it: adds up what
  // measure(stretch) returns, stretch by stretch in the order of the elements, so that the sums do
  // not depend on threads or on what else is in the operation. Where an overflow was found nothing
  // is measured. by_tensor: one a parameter; scratch: its memory is used anew in each step.
  template <typename Measure>
  void measure(const Measure& measure, std::vector<Sums>& by_tensor,
               std::vector<Sums>& scratch) const {
    by_tensor.assign(static_cast<size_t>(tensors_), Sums());
    if (found_inf_ && *found_inf_ != 0) return;
    const int64_t count = static_cast<int64_t>(chunks_.size());
    scratch.assign(chunks_.size(), Sums());
#pragma omp parallel for if (elements_ >= kParallelElements)
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t at = 0; at < chunks_[i].count; at += kTile) {
        alignas(64) float widened[kTile];
        add(measure(stretch_at(chunks_[i], at, widened)), scratch[i]);
      }
    }
    for (int64_t i = 0; i < count; ++i) add(scratch[i], by_tensor[chunks_[i].tensor]);
  }

  float learning_rate() const { return *rate_; }
  float gradient_scale() const { return scale_ ? *scale_ : 1; }

 private:
  static constexpr int64_t kChunk = 16384, kTile = 1024;  // elements; a tile stays in the L1 cache
  struct Chunk {
    float* parameter;
    const void* gradient;
    float* states[kMaxStates];
    void* copy;
    bool alternates;  // the copy's rows do
    int64_t count;
    int tensor;
  };

  static void add(const Sums& more, Sums& to) {
    to.first += more.first;
    to.second += more.second;
  }

  Stretch stretch_at(const Chunk& chunk, int64_t at, float* widened) const;
  bool has_copies() const { return chunks_.front().copy != nullptr; }
  void write_copy(const Chunk& chunk, int64_t at, const Stretch& stretch) const;

  std::vector<Chunk> chunks_;
  int64_t elements_ = 0;
  int tensors_ = 0;
  DType gradient_dtype_ = DType::kFloat32, copy_dtype_ = DType::kFloat32;
  const float *rate_, *scale_;
  const int32_t* found_inf_;
};

}  // namespace fleet::cpu
