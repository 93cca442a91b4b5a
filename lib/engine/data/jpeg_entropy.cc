#include "data/jpeg_entropy.h"

#include <jerror.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#if __has_include(<jpegint.h>)
#include <jpegint.h>
#define FLEET_JPEG_INTERNALS 1
#endif

#include "base/cpu.h"

namespace fleet::data {
namespace {

constexpr int kLastCoefficient = 63;  // in a block

// From the order of the file to rows. A broken file, and the end of a block, lead behind the last
// coefficient.
constexpr auto kZigzag = [] {
  std::array<uint8_t, kLastCoefficient + 1 + 64> order{};
  order.fill(kLastCoefficient);
  int x = 0, y = 0;
  for (int i = 0; i <= kLastCoefficient; ++i) {
    order[i] = static_cast<uint8_t>(8 * y + x);
    const bool up = (x + y) % 2 == 0;
    if (up ? x == 7 : y == 7) {
      ++(up ? y : x);
    } else if (up ? y == 0 : x == 0) {
      ++(up ? x : y);
    } else {
      x += up ? 1 : -1;
      y += up ? -1 : 1;
    }
  }
  return order;
}();

uint64_t next_eight_bytes(const uint8_t* from) {
  uint64_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return std::endian::native == std::endian::little ? __builtin_bswap64(bytes) : bytes;
}

}  // namespace

// jpeg_start_decompress() has checked that codes fit into their bits, and that numbers of DC have
// up to 15 bits.
void JpegEntropy::Table::make(const JHUFF_TBL& from, bool dc) {
  if (made && std::memcmp(made_of.bits, from.bits, sizeof from.bits) == 0 &&
      std::memcmp(made_of.huffval, from.huffval, sizeof from.huffval) == 0) {
    return;
  }
  made_of = from;
  made = true;
  short_codes.fill({});
  uint32_t code = 0;  // in 16 bits
  int count = 0;
  for (int length = 1; length <= 16; ++length) {
    first[length] = count - static_cast<int>(code >> (16 - length));
    for (int i = 0; i < from.bits[length]; ++i, ++count) {
      const int run = dc ? 0 : from.huffval[count] >> 4;
      const int size = dc ? from.huffval[count] : from.huffval[count] & 15;
      const bool ends = size == 0 && run != 15;
      symbols[count] = {.length = static_cast<uint8_t>(length),
                        .shift = static_cast<uint8_t>(63 - size),
                        .total = static_cast<uint8_t>(length + size),
                        .advance = static_cast<uint8_t>(ends ? kLastCoefficient + 1 : run + 1)};
      if (length <= kPeek) {
        const uint32_t at = code >> (16 - kPeek);
        std::fill_n(&short_codes[at], 1 << (kPeek - length), symbols[count]);
      }
      code += 1u << (16 - length);
    }
    end[length] = code;
  }
}

// The symbol of a code that is longer than kPeek; its shift is 0 if no code fits.
JpegEntropy::Symbol JpegEntropy::Table::find(uint32_t bits) const {
  for (int length = kPeek + 1; length <= 16; ++length) {
    if (bits < end[length]) return symbols[first[length] + (bits >> (16 - length))];
  }
  return {.length = 0, .shift = 0, .total = 0, .advance = kLastCoefficient + 1};
}

FLEET_INLINE void JpegEntropy::Bits::fill() {
  value |= next_eight_bytes(next) >> count;
  next += (63 - count) >> 3;
  count |= 56;
}

// The signed number behind the code of the symbol, 0 if it has no bits. Without a branch: signs
// cannot be predicted.
FLEET_INLINE int JpegEntropy::Bits::number(Symbol symbol) const {
  const uint64_t after = value << symbol.length;
  const auto negative = static_cast<int64_t>(~after) >> 63;
  const auto magnitude = ((after ^ static_cast<uint64_t>(negative)) >> 1) >> symbol.shift;
  return (static_cast<int>(magnitude) ^ static_cast<int>(negative)) - static_cast<int>(negative);
}

FLEET_INLINE void JpegEntropy::Bits::drop(uint32_t bits) {
  value <<= bits;
  count -= bits;
}

#ifdef FLEET_JPEG_INTERNALS

namespace {

int decoded_block_side(const jpeg_component_info& part) {
#if JPEG_LIB_VERSION >= 70
  return part.DCT_h_scaled_size;
#else
  return part.DCT_scaled_size;
#endif
}

}  // namespace

bool JpegEntropy::decode(JBLOCKROW* blocks) {
  Bits bits = bits_;
  bool good = true;
  const auto next_symbol = [&](const Table& table) __attribute__((always_inline)) {
    // `bits` has at least 25 bits, enough for any code. The table is read while bits are filled up.
    Symbol symbol = table.short_codes[bits.value >> (64 - kPeek)];
    bits.fill();
    if (symbol.length == 0) [[unlikely]] {
      symbol = table.find(bits.value >> 48);
      if (symbol.shift == 0) good = false;
    }
    return symbol;
  };
  for (int i = 0; i < blocks_in_mcu_; ++i) {
    const Block& block = blocks_[i];
    int16_t* to = blocks ? *blocks[i] : nullptr;
    const Symbol dc = next_symbol(*block.dc);
    int& last = last_dc_[block.component];
    if (__builtin_add_overflow(last, bits.number(dc), &last)) good = false;
    bits.drop(dc.total);
    if (to && block.needs_dc) to[0] = static_cast<int16_t>(last);
    int k = 0;
    if (to && block.needs_ac) {
      do {
        const Symbol ac = next_symbol(*block.ac);
        k += ac.advance;
        to[kZigzag[k]] = static_cast<int16_t>(bits.number(ac));
        bits.drop(ac.total);
      } while (k < kLastCoefficient);
    } else {
      do {
        const Symbol ac = next_symbol(*block.ac);
        k += ac.advance;
        bits.drop(ac.total);
      } while (k < kLastCoefficient);
    }
  }
  bits_ = bits;
  return good;
}

void JpegEntropy::begin_segment() {
  bits_ = {.value = 0, .count = 0, .next = piece_.data()};
  piece_end_ = piece_.data();
  last_piece_ = false;
  refill();
  bits_.fill();
  last_dc_.fill(0);
}

void JpegEntropy::refill() {
  const auto left = static_cast<size_t>(piece_end_ - bits_.next);
  std::memmove(piece_.data(), bits_.next, left);
  bits_.next = piece_.data();
  uint8_t *to = piece_.data() + left, *const limit = piece_.data() + kPiece;
  while (to < limit && !last_piece_) {
    const auto most = std::min(limit - to, source_end_ - source_);
    const void* found = std::memchr(source_, 0xff, static_cast<size_t>(most));
    const auto* ff = found ? static_cast<const uint8_t*>(found) : source_ + most;
    to = std::copy(source_, ff, to);
    source_ = ff;
    if (found) {
      while (ff < source_end_ && *ff == 0xff) ++ff;  // some may be there to align a marker
      last_piece_ = ff == source_end_ || *ff != 0;
      if (!last_piece_) *to++ = 0xff, source_ = ff + 1;
    } else {
      last_piece_ = source_ == source_end_;
    }
  }
  piece_end_ = to;
  if (last_piece_) std::memset(to, 0, kMostOfMcu);
}

// Whether more bits were taken than there are.
bool JpegEntropy::overran() const { return bits_.next - bits_.count / 8 > piece_end_; }

// To the next marker, which must be the restart that is due.
bool JpegEntropy::restart() {
  const uint8_t* p = source_;
  while (source_end_ - p >= 2 && !(p[0] == 0xff && p[1] != 0 && p[1] != 0xff)) ++p;
  if (source_end_ - p < 2 || p[1] != 0xd0 + next_restart_) return false;
  source_ = p + 2;
  begin_segment();
  next_restart_ = (next_restart_ + 1) % 8;
  return true;
}

// 0, or the code of libjpeg's warning.
int JpegEntropy::next_mcu(unsigned restart_interval, JBLOCKROW* blocks) {
  if (restart_interval > 0) {
    if (until_restart_ == 0) {
      if (!restart()) return JWRN_MUST_RESYNC;
      until_restart_ = restart_interval;
    }
    --until_restart_;
  }
  if (!last_piece_ && piece_end_ - bits_.next < ptrdiff_t{kMostOfMcu}) refill();
  const bool good = decode(blocks);
  if (overran()) return source_ == source_end_ ? JWRN_JPEG_EOF : JWRN_HIT_MARKER;
  return good ? 0 : JWRN_HUFF_BAD_CODE;
}

boolean JpegEntropy::decode_mcu(j_decompress_ptr info, JBLOCKROW* blocks) {
  auto* self = static_cast<JpegEntropy*>(info->client_data);
  if (const int damage = self->next_mcu(info->restart_interval, blocks)) {
    info->err->msg_code = damage;
    (*info->err->emit_message)(reinterpret_cast<j_common_ptr>(info), -1);
  }
  return TRUE;
}

void JpegEntropy::take_over(j_decompress_ptr info) {
  const bool fits = !info->progressive_mode && !info->arith_code && info->data_precision == 8 &&
                    !jpeg_has_multiple_scans(info) && info->Ss == 0 &&
                    info->Se == kLastCoefficient && info->Ah == 0 && info->Al == 0 &&
                    info->unread_marker == 0;
  if (!fits) return;
  blocks_in_mcu_ = info->blocks_in_MCU;
  for (int i = 0; i < blocks_in_mcu_; ++i) {
    const int at = info->MCU_membership[i];
    const jpeg_component_info& part = *info->cur_comp_info[at];
    dc_[part.dc_tbl_no].make(*info->dc_huff_tbl_ptrs[part.dc_tbl_no], true);
    ac_[part.ac_tbl_no].make(*info->ac_huff_tbl_ptrs[part.ac_tbl_no], false);
    blocks_[i] = {.dc = &dc_[part.dc_tbl_no],
                  .ac = &ac_[part.ac_tbl_no],
                  .component = at,
                  .needs_dc = part.component_needed != FALSE,
                  .needs_ac = part.component_needed != FALSE && decoded_block_side(part) > 1};
  }
  source_ = info->src->next_input_byte;
  source_end_ = source_ + info->src->bytes_in_buffer;
  begin_segment();
  next_restart_ = 0;
  until_restart_ = info->restart_interval;
  info->client_data = this;
  info->entropy->decode_mcu = decode_mcu;
}

#else

void JpegEntropy::take_over(j_decompress_ptr) {}

#endif

}  // namespace fleet::data
