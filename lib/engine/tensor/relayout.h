// Copies tensors between layouts on the host, one tile at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/layout.h"

namespace fleet {

// A copy between two layouts of one shape, prepared once. Thread-safe.
class Relayout {
 public:
  // size: bytes per element: 1, 2, 4 or 8. kInternal if a layout is opaque.
  Relayout(const Shape& shape, size_t size, const Layout& from, const Layout& to);

  // Copies the whole tensor but leaves the target's padding unchanged.
  void run(const void* source, void* target) const { run(0, first_.size(), source, target); }
  // Copies rows [begin, end) of the first axis; begin must be a multiple of row_step(). The target
  // points to the destination of the first of these rows, the source to the whole tensor.
  void run(int64_t begin, int64_t end, const void* source, void* target) const;
  int64_t rows() const { return first_.size(); }  // 1 for a scalar
  static constexpr int64_t row_step() { return kStep; }

 private:
  static constexpr int64_t kStep = 16;
  // The positions of the indices of an axis, or of adjacent axes that one layout merges, in
  // elements. Aligned runs of this length (at most kStep) are contiguous.
  struct Axis {
    std::vector<int64_t> from, to;
    int64_t from_run = 1, to_run = 1;
    int64_t size() const { return static_cast<int64_t>(from.size()); }
  };
  // A part of an axis.
  struct Range {
    const Axis* axis;
    int64_t begin, end;
  };
  template <typename T>
  struct Copy;
  static Axis axis_of(const Shape& shape, int d, const Layout& from, const Layout& to);
  static bool join(Axis* outer, const Axis& inner);

  const size_t size_;
  Axis first_;  // the shape's first axis, kept separate so that rows can be copied
  std::vector<Axis> others_;
};

}  // namespace fleet
