#include "data/pixel_scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace fleet::data {
namespace {

TEST(PixelScratch, SeveralAtOnce_AreApartAndAligned) {
  const PixelScratch a(1000), b(3000);
  std::memset(a.get(), 1, 1000);
  std::memset(b.get(), 2, 3000);
  EXPECT_EQ(static_cast<uint8_t*>(a.get())[999], 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.get()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b.get()) % 64, 0u);
}

TEST(PixelScratch, MadeAgain_HasTheSameMemoryWhileItFits) {
  void* first = nullptr;
  {
    const PixelScratch scratch(4096);
    first = scratch.get();
  }
  {
    const PixelScratch scratch(4000);
    EXPECT_EQ(scratch.get(), first);
  }
  const PixelScratch larger(1 << 20);
  std::memset(larger.get(), 0, 1 << 20);
}

}  // namespace
}  // namespace fleet::data
