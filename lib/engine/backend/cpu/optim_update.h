// Updates of many parameters in one operation: code that the kernels of all update rules share.
#pragma once

#include <utility>
#include <vector>

#include "backend/cpu/elementwise.h"
#include "optim/update_rule.h"

namespace fleet::cpu {

// One layout for every group: the first that a member has.
void update_layouts(LayoutQuery& query);

// The parameters of one update operation, split into chunks that threads share. Elementwise rules
// give the same bits however parameters are merged into operations.
class UpdateChunks {
 public:
  // A stretch of a parameter with its states and gradient in float32: the unit that a rule
  // processes. Values stored in another type are in buffers.
  struct Stretch {
    float* parameter;
    const float* gradient;
    float* const* states;  // those of the chunk that the stretch is in, or buffers
    int64_t begin;         // in `states`
    int64_t count;
    int tensor;  // index of the parameter in the operation
    // State s of the operation's definition.
    float* state(int s) const { return states[s] + begin; }
  };
  // Sums over the elements of one parameter.
  struct Sums {
    double first = 0, second = 0;
  };

  explicit UpdateChunks(const KernelContext& context);

  // Calls rule(stretch) for all elements, unless an overflow was found. Also writes the copies of
  // parameters.
  template <typename Rule>
  void run(const Rule& rule) const {
    run_chunks({0, static_cast<int64_t>(chunks_.size())}, rule);
  }

  // For rules that need sums over a whole parameter before they change it. Adds up the results of
  // measure(stretch) in the order of the elements, so that the sums do not depend on threads or on
  // other parameters of the operation; then calls rule(stretch, sums) as run() does. Processes a
  // few parameters at a time, so that the second pass finds them in the cache. scratch: memory that
  // is reused in each step.
  template <typename Measure, typename Rule>
  void run_measured(const Measure& measure, const Rule& rule, std::vector<Sums>& scratch) const {
    scratch.resize(chunks_.size() + static_cast<size_t>(tensors_));
    Sums* by_tensor = scratch.data() + chunks_.size();
    for (const Range& range : blocks_) {
      if (!skipped()) measure_chunks(range, measure, scratch.data(), by_tensor);
      run_chunks(range, [&](const Stretch& at) { rule(at, by_tensor[at.tensor]); });
    }
  }

  float learning_rate() const { return *rate_; }
  float gradient_scale() const { return scale_ ? *scale_ : 1; }

 private:
  static constexpr int64_t kChunk = 16384, kTile = 1024;  // elements; a tile stays in the L1 cache
  // Elements of whole parameters that fit in the L3 cache.
  static constexpr int64_t kBlock = 512 << 10;
  struct Range {  // a range of chunks
    int64_t begin, end;
  };
  struct Chunk {
    void* parameter;
    const void* gradient;
    size_t first_state;  // in states_ or narrow_states_
    void* copy;
    bool alternates;  // the copy's rows are interleaved
    int64_t begin;    // in the parameter
    int64_t count;
    int tensor;
  };
  static constexpr int kMaxStates = 4;
  // A tile of a bfloat16 parameter and its states, in float32.
  struct NarrowTile {
    alignas(64) float parameter[kTile];
    alignas(64) float states[kMaxStates][kTile];
    float* pointers[kMaxStates];
  };

  static void add(const Sums& more, Sums& to) {
    to.first += more.first;
    to.second += more.second;
  }

  bool skipped() const { return found_inf_ && *found_inf_ != 0; }

  template <typename Rule>
  void run_chunks(Range range, const Rule& rule) const {
    const bool skips = skipped();
    if (skips && !has_copies()) return;
    if (is_narrow()) return run_narrow(range, rule);
#pragma omp parallel for if (elements_ >= kParallelElements)
    for (int64_t i = range.begin; i < range.end; ++i) {
      for (int64_t at = 0; at < chunks_[i].count; at += kTile) {
        alignas(64) float widened[kTile];
        const Stretch stretch = stretch_at(chunks_[i], at, widened);
        if (!skips) rule(stretch);
        write_copy(chunks_[i], at, stretch);
      }
    }
  }

  // Calls rule(stretch) for the tiles of a chunk of a bfloat16 parameter, and rounds what it
  // leaves.
  template <typename Rule>
  void run_narrow_chunk(const Chunk& chunk, int64_t step, const Rule& rule) const {
    NarrowTile tile;
    for (int64_t at = 0; at < chunk.count; at += kTile) {
      alignas(64) float widened[kTile];
      rule(open_tile(chunk, at, tile, widened));
      close_tile(chunk, at, tile, step);
    }
  }
  template <typename Rule>
  void run_narrow(Range range, const Rule& rule) const {
    const int64_t step = *step_;
#pragma omp parallel for if (elements_ >= kParallelElements)
    for (int64_t i = range.begin; i < range.end; ++i) run_narrow_chunk(chunks_[i], step, rule);
  }

  template <typename Measure>
  void measure_chunks(Range range, const Measure& measure, Sums* by_chunk, Sums* by_tensor) const {
#pragma omp parallel for if (elements_ >= kParallelElements)
    for (int64_t i = range.begin; i < range.end; ++i) {
      by_chunk[i] = Sums();
      if (is_narrow()) {
        run_narrow_chunk(chunks_[i], *step_,
                         [&](const Stretch& stretch) { add(measure(stretch), by_chunk[i]); });
        continue;
      }
      for (int64_t at = 0; at < chunks_[i].count; at += kTile) {
        alignas(64) float widened[kTile];
        add(measure(stretch_at(chunks_[i], at, widened)), by_chunk[i]);
      }
    }
    for (int64_t i = range.begin; i < range.end; ++i) by_tensor[chunks_[i].tensor] = Sums();
    for (int64_t i = range.begin; i < range.end; ++i)
      add(by_chunk[i], by_tensor[chunks_[i].tensor]);
  }

  Stretch stretch_at(const Chunk& chunk, int64_t at, float* widened) const;
  const float* gradient_at(const Chunk& chunk, int64_t at, int64_t count, float* widened) const;
  bool is_narrow() const { return !keys_.empty(); }
  Stretch open_tile(const Chunk& chunk, int64_t at, NarrowTile& tile, float* widened) const;
  void close_tile(const Chunk& chunk, int64_t at, const NarrowTile& tile, int64_t step) const;
  bool has_copies() const { return chunks_.front().copy != nullptr; }
  void write_copy(const Chunk& chunk, int64_t at, const Stretch& stretch) const;

  std::vector<Chunk> chunks_;
  std::vector<float*> states_;        // all chunks'; float32
  std::vector<void*> narrow_states_;  // all chunks'; bfloat16
  std::vector<int64_t> keys_;  // for rounding, by tensor; empty: parameters and states are float32
  std::vector<Range> blocks_;  // whole parameters
  int64_t elements_ = 0;
  int tensors_ = 0;
  DType gradient_dtype_ = DType::kFloat32, copy_dtype_ = DType::kFloat32;
  int each_ = 0;  // states of a parameter
  const float *rate_, *scale_;
  const int32_t* found_inf_;
  const int64_t* step_;
};

// constants.update(parameter, gradient, states...) on all elements. s: the numbers of the states.
template <typename Constants, size_t... s>
static FLEET_SIMD void update_stretch(const UpdateChunks::Stretch& at, Constants constants,
                                      std::index_sequence<s...>) {
  float* parameter = at.parameter;
  const float* gradient = at.gradient;
  float* const states[] = {at.state(s)..., nullptr};  // an array has at least one element
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    constants.update(parameter[i], gradient[i], states[s][i]...);
  }
}

// The kernel of an elementwise rule (optim/update_rule.h).
template <typename Rule>
std::unique_ptr<Kernel> update_kernel(KernelContext& context) {
  return make_kernel([chunks = UpdateChunks(context), rule = rule_of<Rule>(context)](Stream&) {
    const auto constants = rule.at(chunks.learning_rate(), chunks.gradient_scale());
    chunks.run([=](const UpdateChunks::Stretch& at) {
      update_stretch(at, constants, std::make_index_sequence<Rule::kStates>());
    });
  });
}
template <typename Rule>
void define_update(KernelDef& def) {
  def.layouts = update_layouts;
  def.create = update_kernel<Rule>;
}

}  // namespace fleet::cpu
