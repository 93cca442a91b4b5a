#include <algorithm>

#include "backend/cpu/elementwise.h"

namespace fleet {

FLEET_KERNEL(cpu, hardmax) {
  def.create = [](KernelContext& context) {
    const Shape& shape = context.inputs[0].shape;
    const float* x = context.inputs[0].as<float>();
    float* y = context.outputs[0].as<float>();
    const int64_t columns = shape[shape.rank() - 1], rows = shape.elements() / columns;
    return make_kernel([=](Stream&) {
      for (int64_t n = 0; n < rows; ++n) {
        const float* row = x + n * columns;
        const int64_t largest = std::max_element(row, row + columns) - row;
        std::fill_n(y + n * columns, columns, 0.0f);
        y[n * columns + largest] = 1;
      }
    });
  };
}

}  // namespace fleet
