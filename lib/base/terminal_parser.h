// The bytes that a program writes to a terminal, taken apart into characters and control sequences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fleet {

// What a TerminalParser finds. Everything else (titles, clipboard, device control, character sets,
// single controls such as the bell) is dropped.
class TerminalSink {
 public:
  virtual ~TerminalSink() = default;
  // One character, as valid UTF-8. Bytes that are none come as U+FFFD.
  virtual void character(std::string_view utf8, char32_t code) = 0;
  // '\n', '\r', '\b' or '\t'.
  virtual void control(char c) = 0;
  // ESC [ parameters final, without intermediate bytes.
  virtual void sequence(std::string_view parameters, char final) = 0;
};

// Output may be cut into pieces anywhere. A sequence that is not ended is given up at the end of
// its line, so that it cannot swallow what follows. Not thread safe.
class TerminalParser {
 public:
  explicit TerminalParser(TerminalSink& sink) : sink_(sink) {}
  void add(std::string_view output);
  // The end of all output: a character that is not whole is replaced.
  void finish();

 private:
  enum class State { kText, kEscape, kIntermediate, kSequence, kString, kStringEscape };

  void take(unsigned char byte);
  void take_text(unsigned char byte);
  void take_escape(unsigned char byte);
  void take_sequence(unsigned char byte);
  bool continues(unsigned char byte);
  void end_character();
  void control_of_c1(char32_t code);

  TerminalSink& sink_;
  State state_ = State::kText;
  std::string parameters_, character_;
  size_t missing_ = 0;  // bytes of character_
  bool private_ = false;
};

// The size of the UTF-8 character at the beginning of `text`, and which one; 0 where there is none.
size_t character_size(std::string_view text, char32_t* code);
// Columns that a character takes: 0 (it combines with the one before), 1 or 2.
int columns_of(char32_t code);
// Whether it changes how its neighbours are shown, and shows nothing itself: bidirectional
// overrides, which make text read as another.
bool is_direction_mark(char32_t code);

}  // namespace fleet
