#include "backend/cpu/optim_update.h"

#include <bit>

#include "optim/stochastic_rounding.h"
#include "tensor/float16.h"

namespace fleet::cpu {
namespace {

constexpr int64_t kRow = 16;

template <typename T>
FLEET_INLINE void widen_all(const void* from, float* to, int64_t count) {
  const T* values = static_cast<const T*>(from);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(values[i]);
}
template <typename T>
FLEET_INLINE void narrow_all(const float* from, void* to, int64_t count) {
  T* values = static_cast<T*>(to);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) values[i] = from[i];
}

FLEET_SIMD void widen_bfloat16(const void* from, float* to, int64_t count) {
  widen_all<BFloat16>(from, to, count);
}
FLEET_SIMD void widen_float16(const void* from, float* to, int64_t count) {
  widen_all<Float16>(from, to, count);
}
FLEET_SIMD void narrow_bfloat16(const float* from, void* to, int64_t count) {
  narrow_all<BFloat16>(from, to, count);
}
FLEET_SIMD void narrow_float16(const float* from, void* to, int64_t count) {
  narrow_all<Float16>(from, to, count);
}

// The random bits of elements first, first + 1, ...
FLEET_SIMD void draw_all(uint64_t stream, int64_t first, int64_t count, uint64_t* draws) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    draws[i] = rounding_draw(stream, static_cast<uint64_t>(first + i));
  }
}
FLEET_SIMD void round_all(const float* from, const uint64_t* draws, int shift, void* to,
                          int64_t count) {
  uint16_t* values = static_cast<uint16_t*>(to);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const auto random = static_cast<uint32_t>(draws[i] >> shift) & 0xffff;
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    values[i] = static_cast<uint16_t>(round_to_bfloat16(bits, random));
  }
}

// Interleaves rows of 16 elements in pairs. count: whole pairs.
FLEET_SIMD void narrow_pairs_bfloat16(const float* from, void* to, int64_t count) {
  uint32_t* words = static_cast<uint32_t*>(to);
  for (int64_t at = 0; at < count; at += 2 * kRow) {
#pragma omp simd
    for (int64_t i = 0; i < kRow; ++i) {
      uint32_t low, high;
      narrow_to_bfloat16(std::bit_cast<uint32_t>(from[at + i]), low);
      narrow_to_bfloat16(std::bit_cast<uint32_t>(from[at + kRow + i]), high);
      words[at / 2 + i] = low | high << 16;
    }
  }
}

// Whether `to` is `from` with pairs of rows interleaved in its blocks of 16 times 16: the layout
// that bfloat16 convolutions use for weights.
bool alternates_rows(const Layout& from, const Layout& to) {
  if (from.is_opaque() || to.is_opaque() || from.padded() != to.padded()) return false;
  if (from.strides() != to.strides() || from.inner().size() != 2) return false;
  const int row = from.inner()[0].axis, column = from.inner()[1].axis;
  return from.inner() == std::vector<Layout::Block>{{row, kRow}, {column, kRow}} &&
         to.inner() == std::vector<Layout::Block>{{row, kRow / 2}, {column, kRow}, {row, 2}};
}

bool is_low(DType dtype) { return dtype == DType::kBFloat16 || dtype == DType::kFloat16; }

template <typename T>
T* advance(T* data, int64_t elements, size_t size) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Byte*>(data) + elements * static_cast<int64_t>(size);
}

}  // namespace

void update_layouts(LayoutQuery& query) {
  fleet::update_layouts(query);
  const UpdateGroups groups(*query.op().def, query.op().inputs.size());
  for (int k = 0; k < groups.count; ++k) {
    // Writes the copy in its readers' layout if that differs only in the order of rows.
    const int copy = groups.copy(k);
    if (!query.has_output(copy) || query.output_var(copy).dtype != DType::kBFloat16) continue;
    const Layout& common = query.needed(groups.parameter(k));
    const std::optional<Layout>& wanted = query.bound_output(copy);
    if (wanted && alternates_rows(common, *wanted)) query.give(copy, *wanted);
  }
}

UpdateChunks::UpdateChunks(const KernelContext& context)
    : rate_(context.inputs[kUpdateLearningRate].as<float>()),
      scale_(context.inputs[kUpdateGradientScale].as<float>()),
      found_inf_(context.inputs[kUpdateFoundInf].as<int32_t>()),
      step_(context.inputs[kUpdateStep].as<int64_t>()) {
  const UpdateGroups groups(*context.op.def, context.op.inputs.size());
  const DType stored = context.inputs[groups.parameter(0)].dtype;
  if (stored != DType::kFloat32) keys_ = context.attributes().integers(kRoundingKeys);
  each_ = groups.states();
  FLEET_CHECK(each_ <= kMaxStates, context.op.type() + ": a rule with more states");
  tensors_ = groups.count;
  gradient_dtype_ = context.inputs[groups.gradient(0)].dtype;
  if (const Argument& copy = context.outputs[groups.copy(0)]) copy_dtype_ = copy.dtype;
  FLEET_CHECK(gradient_dtype_ == DType::kFloat32 || is_low(gradient_dtype_),
              std::string("gradients of type ") + name_of(gradient_dtype_));
  int64_t block_elements = 0;
  for (int k = 0; k < groups.count; ++k) {
    const Argument& parameter = context.inputs[groups.parameter(k)];
    FLEET_CHECK(parameter.data == context.outputs[groups.output(k)].data,
                context.op.type() + " works in place");
    const int64_t count = parameter.layout.elements();
    if (block_elements == 0 || block_elements + count > kBlock) {
      const auto begin = static_cast<int64_t>(chunks_.size());
      blocks_.push_back({begin, begin});
      block_elements = 0;
    }
    block_elements += count;
    elements_ += count;
    for (int64_t at = 0; at < count; at += kChunk) {
      Chunk chunk{.parameter = advance(parameter.data, at, size_of(stored)),
                  .gradient = advance<const void>(context.inputs[groups.gradient(k)].data, at,
                                                  size_of(gradient_dtype_)),
                  .first_state = states_.size() + narrow_states_.size(),
                  .copy = nullptr,
                  .alternates = false,
                  .begin = at,
                  .count = std::min(kChunk, count - at),
                  .tensor = k};
      for (int s = 0; s < groups.states(); ++s) {
        const Argument& state = context.inputs[groups.state(k, s)];
        void* data = advance(state.data, at, size_of(stored));
        is_narrow() ? narrow_states_.push_back(data) : states_.push_back(static_cast<float*>(data));
      }
      if (const Argument& copy = context.outputs[groups.copy(k)]) {
        chunk.copy = advance(copy.data, at, size_of(copy_dtype_));
        chunk.alternates = copy.layout != parameter.layout;
      }
      chunks_.push_back(chunk);
    }
    blocks_.back().end = static_cast<int64_t>(chunks_.size());
  }
}

const float* UpdateChunks::gradient_at(const Chunk& chunk, int64_t at, int64_t count,
                                       float* widened) const {
  const void* gradient = advance(chunk.gradient, at, size_of(gradient_dtype_));
  if (gradient_dtype_ == DType::kFloat32) return static_cast<const float*>(gradient);
  if (gradient_dtype_ == DType::kBFloat16) {
    widen_bfloat16(gradient, widened, count);
  } else {
    widen_float16(gradient, widened, count);
  }
  return widened;
}

UpdateChunks::Stretch UpdateChunks::stretch_at(const Chunk& chunk, int64_t at,
                                               float* widened) const {
  const int64_t count = std::min(kTile, chunk.count - at);
  return {.parameter = static_cast<float*>(chunk.parameter) + at,
          .gradient = gradient_at(chunk, at, count, widened),
          .states = states_.data() + chunk.first_state,
          .begin = at,
          .count = count,
          .tensor = chunk.tensor};
}

UpdateChunks::Stretch UpdateChunks::open_tile(const Chunk& chunk, int64_t at, NarrowTile& tile,
                                              float* widened) const {
  const int64_t count = std::min(kTile, chunk.count - at);
  widen_bfloat16(advance(chunk.parameter, at, sizeof(BFloat16)), tile.parameter, count);
  for (int s = 0; s < each_; ++s) {
    tile.pointers[s] = tile.states[s];
    const void* state = narrow_states_[chunk.first_state + s];
    widen_bfloat16(advance(state, at, sizeof(BFloat16)), tile.states[s], count);
  }
  return {.parameter = tile.parameter,
          .gradient = gradient_at(chunk, at, count, widened),
          .states = tile.pointers,
          .begin = 0,
          .count = count,
          .tensor = chunk.tensor};
}

void UpdateChunks::close_tile(const Chunk& chunk, int64_t at, const NarrowTile& tile,
                              int64_t step) const {
  const int64_t count = std::min(kTile, chunk.count - at);
  const auto key = static_cast<uint64_t>(keys_[chunk.tensor]);
  alignas(64) uint64_t draws[kTile];
  for (int value = 0; value <= each_; ++value) {
    if (value % kValuesOfDraw == 0) {
      draw_all(rounding_stream(key, step, value), chunk.begin + at, count, draws);
    }
    const float* from = value == 0 ? tile.parameter : tile.states[value - 1];
    void* to = value == 0 ? chunk.parameter : narrow_states_[chunk.first_state + value - 1];
    round_all(from, draws, rounding_shift(value), advance(to, at, sizeof(BFloat16)), count);
  }
}

void UpdateChunks::write_copy(const Chunk& chunk, int64_t at, const Stretch& stretch) const {
  if (!chunk.copy) return;
  void* copy = advance(chunk.copy, at, size_of(copy_dtype_));
  if (chunk.alternates) return narrow_pairs_bfloat16(stretch.parameter, copy, stretch.count);
  (copy_dtype_ == DType::kBFloat16 ? narrow_bfloat16 : narrow_float16)(stretch.parameter, copy,
                                                                       stretch.count);
}

}  // namespace fleet::cpu
