// Layouts for operations on whole samples.
#pragma once

#include "exec/kernel.h"

namespace fleet {

// For dropout: with whole_samples any layout in which each sample is one run of memory, otherwise
// plain, because masks follow the order of elements.
void keep_samples_layout(LayoutQuery& query);

}  // namespace fleet
