#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace fleet {
namespace {

// RFC 3720, B.4.
TEST(Crc32c, KnownBytes_HaveTheStandardsValues) {
  std::string ascending, zeros(32, '\0'), ones(32, '\xff');
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  for (const auto function : {crc32c, crc32c_by_table}) {
    EXPECT_EQ(function("123456789", 0), 0xe3069283);
    EXPECT_EQ(function(zeros, 0), 0x8a9136aa);
    EXPECT_EQ(function(ones, 0), 0x62a8ab43);
    EXPECT_EQ(function(ascending, 0), 0x46dd794e);
    EXPECT_EQ(function("", 0), 0U);
  }
}

TEST(Crc32c, Parts_GiveThatOfTheWhole) {
  const std::string text = "a text that is cut wherever one likes";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string_view all(text);
    EXPECT_EQ(crc32c(all.substr(cut), crc32c(all.substr(0, cut))), crc32c_by_table(text)) << cut;
  }
}

uint32_t crc32c_by_bit(std::string_view bytes, uint32_t before) {
  uint32_t crc = ~before;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

// Both take eight bytes at a time, from any address, and the rest one by one.
TEST(Crc32c, AnyLengthAndAddress_IsThatOfSingleBits) {
  std::string bytes(64, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37 ^ 0xa5);
  for (size_t from = 0; from < 8; ++from) {
    for (size_t size = 0; from + size <= bytes.size(); ++size) {
      const std::string_view part = std::string_view(bytes).substr(from, size);
      const uint32_t wanted = crc32c_by_bit(part, 7);
      EXPECT_EQ(crc32c(part, 7), wanted) << size << " from " << from;
      EXPECT_EQ(crc32c_by_table(part, 7), wanted) << size << " from " << from;
    }
  }
}

// Long ones are summed in parts at once.
TEST(Crc32c, LongBytes_AreThatOfTheTable) {
  std::string bytes(3 * 12288 + 100, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 3 ^ i);
  for (const size_t size : {12287, 12288, 12289, 24576, 36864, 36964}) {
    for (const size_t from : {0, 1, 7}) {
      const std::string_view part = std::string_view(bytes).substr(from, size - from);
      EXPECT_EQ(crc32c(part, 5), crc32c_by_table(part, 5)) << size << " from " << from;
    }
  }
}

}  // namespace
}  // namespace fleet
