// Copies tensors between layouts on the host, a tile at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/layout.h"

namespace fleet {

// A copy that is prepared once: how two layouts of one shape map to each other. Thread-safe.
class Relayout {
 public:
  // size: bytes of an element: 1, 2, 4 or 8. kInternal where a layout is opaque.
  Relayout(const Shape& shape, size_t size, const Layout& from, const Layout& to);

  // Copies all of it, but does not touch the target's padding.
  void run(const void* source, void* target) const { run(0, first_.size(), source, target); }
  // Rows [begin, end) of the first axis; begin is a multiple of row_step(). The target points to
  // where the first of them goes, the source to the whole tensor.
  void run(int64_t begin, int64_t end, const void* source, void* target) const;
  int64_t rows() const { return first_.size(); }  // 1: a scalar
  static constexpr int64_t row_step() { return kStep; }

 private:
  static constexpr int64_t kStep = 16;
  // The indices of an axis, or of neighbours that one of the layouts sees as one: where each lies,
  // in elements. Aligned runs of so many (kStep at most) lie side by side.
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
  Axis first_;  // of the shape, on its own, so that rows can be copied
  std::vector<Axis> others_;
};

}  // namespace fleet
