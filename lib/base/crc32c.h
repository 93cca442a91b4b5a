// CRC-32C (Castagnoli), as in RFC 3720: "123456789" has 0xe3069283.
#pragma once

#include <cstdint>
#include <string_view>

namespace fleet {

// Of what `before` is the checksum of, with `bytes` behind it. By the processor's instruction where
// it has one.
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

// The same by a table, on any processor.
uint32_t crc32c_by_table(std::string_view bytes, uint32_t before = 0);

}  // namespace fleet
