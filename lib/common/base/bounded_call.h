// Calls that a file server which does not answer may hold forever.
#pragma once

#include <chrono>
#include <functional>

namespace fleet {

// Runs `call` in a thread of its own and waits for it, for at most `limit`. Returns whether it has
// ended, and rethrows its exception. If it has not, its thread continues, at most until this
// process ends: `call` must own what it uses.
bool ends_within(std::chrono::milliseconds limit, std::function<void()> call);

}  // namespace fleet
