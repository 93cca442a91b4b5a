#include "backend/cpu/wait_policy.h"

#include <omp.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace fleet::cpu {
namespace {

// Iterations: some tenths of a millisecond, longer than most gaps between parallel regions. Alone,
// jobs are as fast as with OpenMP's 300,000; with 1,000 a resnet20 is not
// (tests/bench/busy_cores.py).
constexpr char kSpinCount[] = "30000";

}  // namespace

void limit_spinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  if (omp_get_max_threads() < 2) return;
  ::setenv("GOMP_SPINCOUNT", kSpinCount, /*overwrite=*/0);
  std::error_code error;  // the link's target, since the process is named after the path
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) ::execv(program.c_str(), argv);
}

}  // namespace fleet::cpu
