#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace fleet {
namespace {

TEST(Hash, AnyFlippedBit_IsSeen) {
  std::vector<unsigned char> bytes(77, 5);
  const uint64_t before = hash_bytes(bytes.data(), bytes.size());
  EXPECT_EQ(hash_bytes(bytes.data(), bytes.size()), before);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= 1 << bit % 8;
    EXPECT_NE(hash_bytes(bytes.data(), bytes.size()), before) << bit;
    bytes[bit / 8] ^= 1 << bit % 8;
  }
}

TEST(Hash, LengthSeedAndOrder_Count) {
  std::set<uint64_t> all;
  for (size_t length = 0; length < 100; ++length) all.insert(hash_text(std::string(length, '\0')));
  EXPECT_EQ(all.size(), 100u);
  EXPECT_NE(hash_text("a", 1), hash_text("a", 2));
  EXPECT_NE(hash_text("b", hash_text("a")), hash_text("a", hash_text("b")));
}

}  // namespace
}  // namespace fleet
