#include "base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "base/cpu.h"
#if defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace fleet {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bits reversed

// [n][byte]: the checksum of that byte followed by n zero bytes.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
    tables[0][i] = value;
  }
  for (size_t zeros = 1; zeros < tables.size(); ++zeros) {
    for (size_t i = 0; i < 256; ++i) {
      const uint32_t before = tables[zeros - 1][i];
      tables[zeros][i] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();
constexpr const std::array<uint32_t, 256>& kTable = kTables[0];

// On any byte order, as one load where the processor's is little-endian.
uint32_t little_endian(const char* at) {
  const auto byte = [&](int i) { return uint32_t{static_cast<unsigned char>(at[i])} << 8 * i; };
  return byte(0) | byte(1) | byte(2) | byte(3);
}

#if defined(__x86_64__)
#define FLEET_CRC_TARGET __attribute__((target("sse4.2")))
#define FLEET_CRC_OF_WORD(crc, word) __builtin_ia32_crc32di(crc, word)
#define FLEET_CRC_OF_BYTE(crc, byte) __builtin_ia32_crc32qi(crc, byte)
bool has_instruction() { return FLEET_X86_HAS("sse4.2"); }
#elif defined(__aarch64__)
#define FLEET_CRC_TARGET __attribute__((target("arch=armv8-a+crc")))
#define FLEET_CRC_OF_WORD(crc, word) __crc32cd(static_cast<uint32_t>(crc), word)
#define FLEET_CRC_OF_BYTE(crc, byte) __crc32cb(crc, byte)
bool has_instruction() { return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#endif

#if defined(FLEET_CRC_TARGET)
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

FLEET_CRC_TARGET uint32_t by_instruction(std::string_view bytes, uint32_t before) {
  static const Shift shift = make_shift();
  uint64_t crc = ~before;
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  for (; end - at >= static_cast<ptrdiff_t>(3 * kPart); at += 3 * kPart) {
    uint64_t second = 0, third = 0;
    for (const char* part = at; part < at + kPart; part += 8) {
      crc = FLEET_CRC_OF_WORD(crc, word_at(part));
      second = FLEET_CRC_OF_WORD(second, word_at(part + kPart));
      third = FLEET_CRC_OF_WORD(third, word_at(part + 2 * kPart));
    }
    crc = shifted(shift, shifted(shift, crc) ^ second) ^ third;
  }
  for (; end - at >= 8; at += 8) crc = FLEET_CRC_OF_WORD(crc, word_at(at));
  auto rest = static_cast<uint32_t>(crc);
  for (; at < end; ++at) rest = FLEET_CRC_OF_BYTE(rest, static_cast<unsigned char>(*at));
  return ~rest;
}
#endif

}  // namespace

uint32_t crc32c_by_table(std::string_view bytes, uint32_t before) {
  uint32_t crc = ~before;
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  for (; end - at >= 8; at += 8) {
    const uint32_t low = crc ^ little_endian(at), high = little_endian(at + 4);
    crc = 0;
    for (int i = 0; i < 4; ++i) {
      crc ^= kTables[7 - i][low >> 8 * i & 0xff] ^ kTables[3 - i][high >> 8 * i & 0xff];
    }
  }
  for (; at < end; ++at) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(*at)) & 0xff];
  return ~crc;
}

uint32_t crc32c(std::string_view bytes, uint32_t before) {
#if defined(FLEET_CRC_TARGET)
  static const bool instruction = has_instruction();
  if (instruction) return by_instruction(bytes, before);
#endif
  return crc32c_by_table(bytes, before);
}

}  // namespace fleet
