#include "base/process_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace fleet {
namespace {

TEST(ProcessMemory, PeakStays_ResidentDoesNot) {
  constexpr size_t kBytes = 64 << 20;
  const ProcessMemory before = process_memory();
  {
    auto block = std::make_unique<char[]>(kBytes);
    std::memset(block.get(), 1, kBytes);
    EXPECT_GE(process_memory().resident, before.resident + static_cast<int64_t>(kBytes * 9 / 10));
  }
  const ProcessMemory after = process_memory();
  EXPECT_GE(after.peak, before.resident + static_cast<int64_t>(kBytes * 9 / 10));
  EXPECT_LT(after.resident, before.resident + static_cast<int64_t>(kBytes / 2));
}

}  // namespace
}  // namespace fleet
