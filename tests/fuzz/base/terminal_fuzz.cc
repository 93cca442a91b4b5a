// Output of ranks for a terminal.
#include <string>

#include "base/terminal_parser.h"
#include "tests/fuzz/fuzz.h"

namespace {

// Everything that is found, as text.
class Found : public fleet::TerminalSink {
 public:
  void character(std::string_view utf8, char32_t code) override {
    char32_t same = 0;
    fleet::fuzz::require(fleet::character_size(utf8, &same) == utf8.size() && same == code,
                         "a character is valid UTF-8");
    text += utf8;
    columns += fleet::columns_of(code);
  }
  void control(char c) override { text += c; }
  void sequence(std::string_view parameters, char final) override {
    text.append("<").append(parameters).append(1, final).append(">");
  }
  std::string text;
  int columns = 0;
};

}  // namespace

// The length of the pieces, and the output.
FLEET_FUZZ(terminal) {
  const size_t piece = 1 + fleet::fuzz::take_byte(&bytes) % 16;
  Found whole, cut;
  fleet::TerminalParser one(whole), other(cut);
  one.add(bytes);
  one.finish();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    other.add(bytes.substr(0, piece));
  }
  other.finish();
  fleet::fuzz::require(whole.text == cut.text, "it does not matter how output is cut into pieces");
}
