#include "base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace fleet {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bits reversed

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
// The instruction has a latency of three cycles, so three parts of a block are summed in turn. The
// sums of the first two parts are then shifted by the number of zero bytes that follow them (Mark
// Adler's crc32c.c).
constexpr size_t kPart = 4096;

// The checksum of each single set bit, shifted by kPart zero bytes: shifting is linear.
using Shift = std::array<std::array<uint32_t, 256>, 4>;

Shift make_shift() {
  std::array<uint32_t, 32> bits{};
  for (size_t bit = 0; bit < bits.size(); ++bit) {
    uint32_t value = uint32_t{1} << bit;
    for (size_t i = 0; i < kPart; ++i) value = value >> 8 ^ kTable[value & 0xff];
    bits[bit] = value;
  }
  Shift shift{};
  for (size_t byte = 0; byte < 4; ++byte) {
    for (uint32_t i = 0; i < 256; ++i) {
      for (size_t bit = 0; bit < 8; ++bit) {
        if (i >> bit & 1) shift[byte][i] ^= bits[8 * byte + bit];
      }
    }
  }
  return shift;
}

uint64_t shifted(const Shift& shift, uint64_t crc) {
  return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^
         shift[3][crc >> 24];
}

uint64_t word_at(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, 8);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t by_instruction(std::string_view bytes, uint32_t before) {
  static const Shift shift = make_shift();
  uint64_t crc = ~before;
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  for (; end - at >= static_cast<ptrdiff_t>(3 * kPart); at += 3 * kPart) {
    uint64_t second = 0, third = 0;
    for (const char* part = at; part < at + kPart; part += 8) {
      crc = __builtin_ia32_crc32di(crc, word_at(part));
      second = __builtin_ia32_crc32di(second, word_at(part + kPart));
      third = __builtin_ia32_crc32di(third, word_at(part + 2 * kPart));
    }
    crc = shifted(shift, shifted(shift, crc) ^ second) ^ third;
  }
  for (; end - at >= 8; at += 8) crc = __builtin_ia32_crc32di(crc, word_at(at));
  auto rest = static_cast<uint32_t>(crc);
  for (; at < end; ++at) rest = __builtin_ia32_crc32qi(rest, static_cast<unsigned char>(*at));
  return ~rest;
}
#endif

}  // namespace

uint32_t crc32c_by_table(std::string_view bytes, uint32_t before) {
  uint32_t crc = ~before;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

uint32_t crc32c(std::string_view bytes, uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return by_instruction(bytes, before);
#endif
  return crc32c_by_table(bytes, before);
}

}  // namespace fleet
