#include "exec/sample_layouts.h"

#include <algorithm>

namespace fleet {

void keep_samples_layout(LayoutQuery& query) {
  if (!query.attributes().boolean("whole_samples") || !query.input(0)) return;
  const Layout& layout = *query.input(0);
  if (layout.is_opaque() || layout.padded().rank() == 0) return;
  const bool splits = std::any_of(layout.inner().begin(), layout.inner().end(),
                                  [](const Layout::Block& block) { return block.axis == 0; });
  const int64_t samples = layout.padded()[0];
  if (splits || samples == 0 || layout.strides()[0] != layout.elements() / samples) return;
  same_layout(query, /*keeps_zeros=*/true);
}

}  // namespace fleet
