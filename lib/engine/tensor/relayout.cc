#include "tensor/relayout.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"

namespace fleet {
namespace {

// The length of the aligned runs with consecutive positions: a power of two, or the number of
// positions.
int64_t run_of(const std::vector<int64_t>& places, int64_t most) {
  const auto size = static_cast<int64_t>(places.size());
  for (int64_t run = most; run > 1; run /= 2) {
    bool holds = true;
    for (int64_t i = 1; i < size && holds; ++i) {
      holds = i % run == 0 || places[i] - places[i - 1] == 1;
    }
    if (holds) return run;
  }
  return 1;
}

bool side_by_side(const std::vector<int64_t>& places) {
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i] - places[i - 1] != 1) return false;
  }
  return true;
}

// Whether the inner axis fills each step of the outer one.
bool follows(const std::vector<int64_t>& outer, const std::vector<int64_t>& inner) {
  for (size_t i = 1; i < outer.size(); ++i) {
    if (outer[i] - outer[i - 1] != static_cast<int64_t>(inner.size())) return false;
  }
  return side_by_side(inner);
}

using Four = uint32_t __attribute__((vector_size(16)));

Four load(const void* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}

// Transposes a 4 x 4 tile of four-byte elements: columns start at `from`, rows at `to`, in
// elements.
void transpose(const char* source, const int64_t* from, char* target, const int64_t* to) {
  const Four a = load(source + 4 * from[0]), b = load(source + 4 * from[1]),
             c = load(source + 4 * from[2]), d = load(source + 4 * from[3]);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Four rows[4] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                        __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                        __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) std::memcpy(target + 4 * to[i], &rows[i], sizeof(Four));
}

}  // namespace

// An element's position is a sum over the axes.
Relayout::Axis Relayout::axis_of(const Shape& shape, int d, const Layout& from, const Layout& to) {
  Axis axis;
  std::array<int64_t, Shape::kMaxRank> index{};
  const std::span<const int64_t> indices(index.data(), static_cast<size_t>(shape.rank()));
  for (; index[d] < shape[d]; ++index[d]) {
    axis.from.push_back(from.offset(indices));
    axis.to.push_back(to.offset(indices));
  }
  return axis;
}

bool Relayout::join(Axis* outer, const Axis& inner) {
  constexpr int64_t kMost = 1 << 16;
  if (outer->size() * inner.size() > kMost) return false;
  if (!follows(outer->from, inner.from) && !follows(outer->to, inner.to)) return false;
  Axis joined;
  for (int64_t i = 0; i < outer->size(); ++i) {
    for (int64_t j = 0; j < inner.size(); ++j) {
      joined.from.push_back(outer->from[i] + inner.from[j]);
      joined.to.push_back(outer->to[i] + inner.to[j]);
    }
  }
  *outer = std::move(joined);
  return true;
}

Relayout::Relayout(const Shape& shape, size_t size, const Layout& from, const Layout& to)
    : size_(size) {
  FLEET_CHECK(!from.is_opaque() && !to.is_opaque(), "an opaque layout cannot be read");
  FLEET_CHECK(size == 1 || size == 2 || size == 4 || size == 8, "unsupported element size");
  first_.from = first_.to = {0};
  if (shape.rank() > 0) first_ = axis_of(shape, 0, from, to);
  for (int d = shape.rank() - 1; d > 0; --d) {  // from last to first
    Axis axis = axis_of(shape, d, from, to);
    if (axis.size() == 1) continue;
    if (!others_.empty() && join(&axis, others_.back())) others_.pop_back();
    others_.push_back(std::move(axis));
  }
  const auto find_runs = [](Axis& axis) {
    axis.from_run = run_of(axis.from, kStep);
    axis.to_run = run_of(axis.to, kStep);
  };
  find_runs(first_);
  for (Axis& axis : others_) find_runs(axis);
}

// One copy: loops over all axes but two, and inside over tiles of those two: the axis that is
// contiguous in the source and the one that is contiguous in the target. They may be the same.
template <typename T>
struct Relayout::Copy {
  std::vector<Range> outer;
  Range in = {}, out = {};

  explicit Copy(const std::vector<Range>& ranges) : outer(ranges) {
    out = take([](const Axis& axis) { return axis.to_run; });
    const bool same = std::all_of(outer.begin(), outer.end(), [&](const Range& range) {
      return range.axis->from_run <= out.axis->from_run;
    });
    if (!same) in = take([](const Axis& axis) { return axis.from_run; });
  }

  Range take(auto run) {
    const auto best = std::max_element(
        outer.begin(), outer.end(),
        [&](const Range& a, const Range& b) { return run(*a.axis) < run(*b.axis); });
    const Range taken = *best;
    outer.erase(best);
    return taken;
  }

  void run(size_t depth, const T* source, T* target) const {
    if (depth == outer.size()) return in.axis ? tiles(source, target) : runs(source, target);
    const Range& range = outer[depth];
    for (int64_t i = range.begin; i < range.end; ++i) {
      run(depth + 1, source + range.axis->from[i], target + range.axis->to[i]);
    }
  }

  void runs(const T* source, T* target) const {
    const Axis& axis = *out.axis;
    const int64_t at_once = std::min(axis.from_run, axis.to_run);
    for (int64_t i = out.begin; i < out.end; i += at_once) {
      const auto count = static_cast<size_t>(std::min(at_once, out.end - i));
      std::memcpy(target + axis.to[i], source + axis.from[i], count * sizeof(T));
    }
  }

  void tiles(const T* source, T* target) const {
    for (int64_t i = in.begin; i < in.end; i += kStep) {
      const T* x = source + in.axis->from[i];
      for (int64_t j = out.begin; j < out.end; j += kStep) {
        // Prefetch, because positions in the source follow no stride that hardware prefetchers
        // detect.
        const int64_t soon = std::min(j + 5 * kStep, out.end);
        for (int64_t k = j + 4 * kStep; k < soon; ++k) __builtin_prefetch(x + out.axis->from[k]);
        tile(i, std::min(i + kStep, in.end), j, std::min(j + kStep, out.end), source, target);
      }
    }
  }

  void tile(int64_t i, int64_t i_end, int64_t j, int64_t j_end, const T* source, T* target) const {
    const Axis &rows = *in.axis, &columns = *out.axis;
    const auto part = [&](int64_t first, int64_t first_column) {
      for (int64_t row = first; row < i_end; ++row) {
        const T* x = source + rows.from[row];
        T* y = target + rows.to[row];
        for (int64_t column = first_column; column < j_end; ++column) {
          y[columns.to[column]] = x[columns.from[column]];
        }
      }
    };
    if (sizeof(T) != 4 || rows.from_run < 4 || columns.to_run < 4) return part(i, j);
    const int64_t row_end = i + (i_end - i) / 4 * 4, column_end = j + (j_end - j) / 4 * 4;
    for (int64_t row = i; row < row_end; row += 4) {
      for (int64_t column = j; column < column_end; column += 4) {
        transpose(reinterpret_cast<const char*>(source + rows.from[row]), &columns.from[column],
                  reinterpret_cast<char*>(target + columns.to[column]), &rows.to[row]);
      }
    }
    if (row_end < i_end) part(row_end, j);
    i_end = row_end;
    if (column_end < j_end) part(i, column_end);
  }
};

void Relayout::run(int64_t begin, int64_t end, const void* source, void* target) const {
  FLEET_CHECK(begin % kStep == 0, "rows must begin at a tile");
  std::vector<Range> ranges = {{&first_, begin, end}};
  for (const Axis& axis : others_) ranges.push_back({&axis, 0, axis.size()});
  for (const Range& range : ranges) {
    if (range.begin >= range.end) return;
  }
  const auto copy = [&](auto type) {
    using T = decltype(type);
    Copy<T>(ranges).run(0, static_cast<const T*>(source),
                        static_cast<T*>(target) - first_.to[begin]);
  };
  switch (size_) {
    case 1:
      return copy(uint8_t{});
    case 2:
      return copy(uint16_t{});
    case 4:
      return copy(uint32_t{});
    default:
      return copy(uint64_t{});
  }
}

void relayout(const Shape& shape, size_t size, const Layout& from, const void* source,
              const Layout& to, void* target) {
  FLEET_CHECK(!from.is_opaque() && !to.is_opaque(), "an opaque layout cannot be read");
  const bool plain = from.is_plain() && to.is_plain() && from.elements() == to.elements();
  if (from == to || plain) {
    std::memcpy(target, source, to.elements() * size);
    return;
  }
  if (to.elements() != shape.elements()) std::memset(target, 0, to.elements() * size);
  Relayout(shape, size, from, to).run(source, target);
}

}  // namespace fleet
