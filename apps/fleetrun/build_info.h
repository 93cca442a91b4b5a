// What this program was built from, for --version: "commit 1a2b3c4d5e6f, GNU 12.2.0, CUDA 13.0.48".
// Generated (scripts/cmake/build_info.cmake).
#pragma once

namespace fleet {
const char* build_info();
}  // namespace fleet
