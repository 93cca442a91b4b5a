#include "base/terminal_parser.h"

#include <algorithm>
#include <array>

namespace fleet {
namespace {

constexpr size_t kLongestSequence = 128;  // bytes of parameters; a longer sequence is not valid
constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr char32_t kReplacementCode = 0xfffd;

struct Range {
  char32_t first, last;
};

template <size_t N>
bool is_in(char32_t code, const std::array<Range, N>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

// Number of bytes that follow this one in UTF-8; 0: it does not begin a multi-byte character.
size_t bytes_after(unsigned char first) {
  if (first >= 0xc2 && first <= 0xdf) return 1;
  if (first >= 0xe0 && first <= 0xef) return 2;
  if (first >= 0xf0 && first <= 0xf4) return 3;
  return 0;
}

}  // namespace

size_t character_size(std::string_view text, char32_t* code) {
  constexpr std::array<char32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  *code = first;
  if (first < 0x80) return 1;
  const size_t more = bytes_after(first);
  if (more == 0 || text.size() <= more) return 0;
  *code &= 0x3fu >> more;
  for (size_t at = 1; at <= more; ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if ((byte & 0xc0) != 0x80) return 0;
    *code = *code << 6 | (byte & 0x3f);
  }
  const bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
  return *code < kLeast[more] || *code > 0x10ffff || surrogate ? 0 : more + 1;
}

int columns_of(char32_t code) {
  static constexpr std::array<Range, 8> kCombining = {{{0x300, 0x36f},
                                                       {0x1ab0, 0x1aff},
                                                       {0x1dc0, 0x1dff},
                                                       {0x200b, 0x200d},
                                                       {0x20d0, 0x20ff},
                                                       {0xfe00, 0xfe0f},
                                                       {0xfe20, 0xfe2f},
                                                       {0xfeff, 0xfeff}}};
  static constexpr std::array<Range, 8> kWide = {{{0x1100, 0x115f},
                                                  {0x2e80, 0xa4cf},
                                                  {0xac00, 0xd7a3},
                                                  {0xf900, 0xfaff},
                                                  {0xff00, 0xff60},
                                                  {0xffe0, 0xffe6},
                                                  {0x1f300, 0x1faff},
                                                  {0x20000, 0x3fffd}}};
  if (code < 0x300) return 1;
  if (is_in(code, kCombining)) return 0;
  return is_in(code, kWide) ? 2 : 1;
}

bool is_direction_mark(char32_t code) {
  static constexpr std::array<Range, 4> kMarks = {
      {{0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}}};
  return code >= 0x61c && is_in(code, kMarks);
}

void TerminalParser::add(std::string_view output) {
  for (const char c : output) take(static_cast<unsigned char>(c));
}

void TerminalParser::finish() {
  if (missing_ > 0) end_character();
  state_ = State::kText;
}

void TerminalParser::take(unsigned char byte) {
  if (missing_ > 0 && continues(byte)) return;
  const bool ends = byte == '\n' || byte == 0x18 || byte == 0x1a;  // CAN and SUB abort a sequence
  if (state_ != State::kText && ends) state_ = State::kText;
  switch (state_) {
    case State::kText:
      return take_text(byte);
    case State::kEscape:
    case State::kIntermediate:
      return take_escape(byte);
    case State::kSequence:
      return take_sequence(byte);
    case State::kString:
      if (byte == 0x07) state_ = State::kText;
      if (byte == 0x1b) state_ = State::kStringEscape;
      return;
    case State::kStringEscape:
      // ESC \ ends it, any other escape sequence as well.
      state_ = State::kEscape;
      return take_escape(byte);
  }
}

void TerminalParser::take_text(unsigned char byte) {
  if (byte == 0x1b) {
    state_ = State::kEscape;
  } else if (byte == '\n' || byte == '\r' || byte == '\b' || byte == '\t') {
    sink_.control(static_cast<char>(byte));
  } else if (byte < 0x20 || byte == 0x7f) {
    return;
  } else {
    character_.assign(1, static_cast<char>(byte));
    missing_ = byte < 0x80 ? 0 : bytes_after(byte);
    if (missing_ == 0) end_character();
  }
}

// Whether `byte` belongs to the incomplete character; if not, that character is replaced.
bool TerminalParser::continues(unsigned char byte) {
  if ((byte & 0xc0) != 0x80) {
    end_character();
    return false;
  }
  character_ += static_cast<char>(byte);
  if (--missing_ == 0) end_character();
  return true;
}

void TerminalParser::end_character() {
  missing_ = 0;
  char32_t code = 0;
  const bool valid = character_size(character_, &code) == character_.size();
  if (valid && code >= 0x80 && code < 0xa0) return control_of_c1(code);
  if (valid && is_direction_mark(code)) return;
  valid ? sink_.character(character_, code) : sink_.character(kReplacement, kReplacementCode);
}

// U+0080 to U+009F are ESC @ to ESC _ as a single character.
void TerminalParser::control_of_c1(char32_t code) {
  state_ = State::kEscape;
  take_escape(static_cast<unsigned char>(code - 0x40));
}

void TerminalParser::take_escape(unsigned char byte) {
  constexpr std::string_view kStrings = "]P_^X";
  const bool first = state_ == State::kEscape;
  if (byte == 0x1b) {
    state_ = State::kEscape;
  } else if (byte >= 0x20 && byte < 0x30) {
    state_ = State::kIntermediate;
  } else if (first && byte == '[') {
    state_ = State::kSequence;
    parameters_.clear();
    private_ = false;
  } else if (first && kStrings.find(static_cast<char>(byte)) != std::string_view::npos) {
    state_ = State::kString;
  } else if (byte >= 0x20) {
    state_ = State::kText;
  }
}

void TerminalParser::take_sequence(unsigned char byte) {
  if (byte == 0x1b) {
    state_ = State::kEscape;
  } else if (byte >= 0x40 && byte < 0x7f) {
    state_ = State::kText;
    if (!private_ && parameters_.size() <= kLongestSequence) {
      sink_.sequence(parameters_, static_cast<char>(byte));
    }
  } else if (byte >= 0x30 && byte < 0x40) {
    private_ = private_ || byte >= 0x3c;  // ESC [ ? ...
    if (parameters_.size() <= kLongestSequence) parameters_ += static_cast<char>(byte);
  } else if (byte >= 0x20 && byte < 0x30) {
    private_ = true;  // an intermediate byte gives it another meaning
  } else if (byte >= 0x80) {
    state_ = State::kText;
    take_text(byte);
  }
}

}  // namespace fleet
