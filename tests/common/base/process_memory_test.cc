#include "base/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace fleet {
namespace {

TEST(ProcessMemory, PeakStays_ResidentDoesNot) {
  constexpr size_t kBytes = 64 << 20;
  const ProcessMemory before = process_memory();
  {
    // The address sanitizer keeps memory that is freed.
    void* const block =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(block, MAP_FAILED);
    std::memset(block, 1, kBytes);
    EXPECT_GE(process_memory().resident, before.resident + static_cast<int64_t>(kBytes * 9 / 10));
    ::munmap(block, kBytes);
  }
  const ProcessMemory after = process_memory();
  EXPECT_GE(after.peak, before.resident + static_cast<int64_t>(kBytes * 9 / 10));
  EXPECT_LT(after.resident, before.resident + static_cast<int64_t>(kBytes / 2));
}

}  // namespace
}  // namespace fleet
