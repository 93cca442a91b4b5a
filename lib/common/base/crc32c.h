// CRC-32C (Castagnoli), as in RFC 3720: "123456789" has 0xe3069283.
#pragma once

#include <cstdint>
#include <string_view>

namespace fleet {

// The checksum of `bytes` appended to data whose checksum is `before`. Uses the processor's
// instruction if it exists.
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

// Like crc32c(), with tables, eight bytes at a time, on any processor.
uint32_t crc32c_by_table(std::string_view bytes, uint32_t before = 0);

}  // namespace fleet
