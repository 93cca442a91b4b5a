// The trait of operations that put the axes of input 0 in another order: axis d of output 0 is axis
// perm[d] of it, by the attribute "perm". Where the layouts of both give the same order in memory,
// nothing has to be moved, and the Plan may give both the same memory.
#pragma once

namespace fleet {

struct Permutation {};

}  // namespace fleet
