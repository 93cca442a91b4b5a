// Entropy decoding of JPEGs in place of libjpeg's, which takes more than half of a photograph's
// time. Internal to data.
#pragma once

// clang-format off
#include <cstdio>  // before jpeglib.h, which uses FILE
#include <jpeglib.h>
// clang-format on

#include <array>
#include <cstddef>
#include <cstdint>

namespace fleet::data {

// Reusable; use one per thread. It must outlive the decompression.
class JpegEntropy {
 public:
  // Call after jpeg_start_decompress() with a source in memory (jpeg_mem_src()). If the image is
  // one sequential scan in Huffman code, libjpeg then takes its coefficients from here, with the
  // same values; info->client_data points to this object. Otherwise nothing changes, nor does it
  // where libjpeg's internal header is not installed.
  //
  // Damage is reported as libjpeg does, through info->err->emit_message(), which must not return. A
  // broken code always is; libjpeg takes most of them for zeros. The end of the file is only if
  // bits behind it are needed.
  void take_over(j_decompress_ptr info);

 private:
  // Bits that find most symbols at once. With more, tables of both kinds fill the cache.
  static constexpr int kPeek = 9;
  // A symbol, and what follows from it.
  struct Symbol {
    uint8_t length;   // bits of its code; 0: more than kPeek
    uint8_t shift;    // 63 less the bits of the number behind the code; 0: no such code
    uint8_t total;    // bits of both
    uint8_t advance;  // coefficients up to the one that it sets
  };
  struct Table {
    std::array<Symbol, 1 << kPeek> short_codes;
    std::array<Symbol, 256> symbols;  // in the order of their codes
    std::array<uint32_t, 17> end;     // by length: behind its last code, in 16 bits
    std::array<int, 17> first;        // by length: the place of code 0 in symbols
    JHUFF_TBL made_of;
    bool made = false;
    void make(const JHUFF_TBL& from, bool dc);
    Symbol find(uint32_t bits) const;
  };
  // The next bits, from the highest one on. The first `count` are valid; the others may belong to
  // the byte at `next`.
  struct Bits {
    uint64_t value;
    uint32_t count;
    const uint8_t* next;
    void fill();
    int number(Symbol symbol) const;
    void drop(uint32_t bits);
  };
  struct Block {
    const Table *dc, *ac;
    int component;
    bool needs_dc, needs_ac;
  };

  static boolean decode_mcu(j_decompress_ptr info, JBLOCKROW* blocks);
  int next_mcu(unsigned restart_interval, JBLOCKROW* blocks);
  bool decode(JBLOCKROW* blocks);
  bool restart();
  void begin_segment();
  void refill();
  bool overran() const;

  std::array<Table, NUM_HUFF_TBLS> dc_, ac_;
  std::array<Block, D_MAX_BLOCKS_IN_MCU> blocks_;
  int blocks_in_mcu_ = 0;
  std::array<int, MAX_COMPS_IN_SCAN> last_dc_{};
  unsigned until_restart_ = 0;  // MCUs
  int next_restart_ = 0;        // its number, 0 to 7

  // No MCU takes more bytes: 10 blocks of 64 symbols of up to 31 bits.
  static constexpr size_t kMostOfMcu = 2560;
  static constexpr size_t kPiece = 16 << 10;
  Bits bits_{};
  const uint8_t *source_ = nullptr, *source_end_ = nullptr;  // the rest, behind piece_
  // A part of the scan without the zeros that follow bytes of 0xff. Zeros are behind the last byte
  // before a marker or the end of the file.
  std::array<uint8_t, kPiece + kMostOfMcu + sizeof(uint64_t)> piece_;
  const uint8_t* piece_end_ = nullptr;
  bool last_piece_ = false;  // before a marker or the end of the file
};

}  // namespace fleet::data
