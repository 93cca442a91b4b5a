// The trait that the pass recompute reads.
#pragma once

namespace fleet {

// An operation whose results are kept until the backward pass reads them, and never computed again,
// because it computes much and its results are small.
struct KeepsResults {};

}  // namespace fleet
