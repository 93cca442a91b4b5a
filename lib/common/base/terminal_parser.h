// Splits the bytes that a program writes to a terminal into characters and control sequences.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

// Receives what a TerminalParser finds. Everything else (titles, clipboard, device control,
// character sets, single controls such as the bell) is dropped.
class TerminalSink {
 public:
  virtual ~TerminalSink() = default;
  // One character, as valid UTF-8. Invalid bytes arrive as U+FFFD.
  virtual void character(std::string_view utf8, char32_t code) = 0;
  // '\n', '\r', '\b' or '\t'.
  virtual void control(char c) = 0;
  // ESC [ parameters final, without intermediate bytes.
  virtual void sequence(std::string_view parameters, char final) = 0;
};

// Output may be cut into pieces anywhere. An unfinished sequence is abandoned at the end of its
// line, so that it cannot swallow the text behind it. Not thread-safe.
class TerminalParser {
 public:
  explicit TerminalParser(TerminalSink& sink) : sink_(sink) {}
  void add(std::string_view output);
  // Ends the output: an incomplete character is replaced.
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
  size_t missing_ = 0;  // bytes of character_ still to come
  bool private_ = false;
};

// The size of the UTF-8 character at the beginning of `text`, and its code; 0 if it has none.
size_t character_size(std::string_view text, char32_t* code);
// Columns that a character occupies: 0 (it combines with its predecessor), 1 or 2.
int columns_of(char32_t code);
// Whether the character is invisible and changes how its neighbours are shown: bidirectional
// overrides can make text read differently.
bool is_direction_mark(char32_t code);

}  // namespace fleet
