// The number of descriptors that this process may open.
#pragma once

namespace fleet {

// Raises it as far as the system allows. Each connection costs a descriptor, and the usual limit,
// 1024, is less than a large job needs or an attacker can open. Processes that this one starts
// inherit it.
void raise_descriptor_limit();

}  // namespace fleet
