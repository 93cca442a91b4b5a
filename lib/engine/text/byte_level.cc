// GPT-2's bytes_to_unicode (openai/gpt-2, src/encoder.py): printable bytes of Latin-1 stand for
// themselves, the others for U+0100 and what follows it.
#include <array>

#include "text/text_splitter.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

struct ByteAlphabet {
  std::array<char32_t, 256> code_point;
  std::array<int, 512> byte;  // code point -> byte; -1: none

  ByteAlphabet() {
    byte.fill(-1);
    char32_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const bool printable =
          (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
      code_point[b] = printable ? b : next++;
      byte[code_point[b]] = static_cast<int>(b);
    }
  }
};

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

}  // namespace

char32_t byte_level_code_point(unsigned char byte) { return byte_alphabet().code_point[byte]; }

std::string byte_level_text(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    append_utf8(byte_level_code_point(static_cast<unsigned char>(byte)), text);
  }
  return text;
}

bool byte_level_bytes(std::string_view text, std::string& bytes) {
  bytes.clear();
  for (size_t at = 0; at < text.size();) {
    const char32_t c = code_point_at(text, at, &at);
    const int byte = c < 512 ? byte_alphabet().byte[c] : -1;
    if (byte < 0) return false;
    bytes.push_back(static_cast<char>(byte));
  }
  return true;
}

}  // namespace fleet::text
