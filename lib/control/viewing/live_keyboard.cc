#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "viewing/live_view.h"

namespace fleet {
namespace {

// The first row after a key that scrolls from row `first`; nullopt: it does not scroll.
// `key`: a letter, or the end of an escape sequence.
std::optional<int> scrolled(const std::string& key, int first, int page) {
  constexpr int kLast = std::numeric_limits<int>::max();
  const auto moved = [&](int rows) {
    return static_cast<int>(std::clamp<int64_t>(int64_t{first} + rows, 0, kLast));
  };
  if (key == "k" || key == "[A" || key == "OA") return moved(-1);
  if (key == "j" || key == "[B" || key == "OB") return moved(1);
  if (key == "[5~") return moved(-page);
  if (key == "[6~") return moved(page);
  if (key == "[H" || key == "OH" || key == "[1~") return 0;
  if (key == "[F" || key == "OF" || key == "[4~") return kLast;
  return std::nullopt;
}

bool ends_sequence(const std::string& sequence) {
  const char last = sequence.back();
  return sequence.size() > 1 && last >= 0x40 && last < 0x7f;
}

}  // namespace

LiveKeyboard::Act LiveKeyboard::press(char byte, const LiveFrame& frame, LiveViewOptions* view) {
  constexpr char kEscape = 0x1b;
  constexpr size_t kLongest = 16;
  std::string key(1, byte);
  if (byte == kEscape) {
    sequence_ = key;
    return Act::kNone;
  }
  if (sequence_.size() == 1 && byte != '[' && byte != 'O') sequence_.clear();  // Esc, then a key
  if (!sequence_.empty()) {
    sequence_ += byte;
    if (sequence_.size() == 2 || (!ends_sequence(sequence_) && sequence_.size() < kLongest)) {
      return Act::kNone;
    }
    key = sequence_.substr(1);
    sequence_.clear();
  }
  if (key == "q") return Act::kEnd;
  const bool had_help = std::exchange(view->help, key == "?" && !view->help);
  if (const auto first = scrolled(key, view->first, std::max(frame.shown, 1))) {
    view->first = *first;
    return Act::kRedraw;
  }
  if (key == "N") {
    view->by_node = !view->by_node;
    view->first = 0;
    return Act::kRedraw;
  }
  const auto column = std::ranges::find_if(
      frame.keys, [&](const LiveKey& one) { return key == std::string(1, one.letter); });
  if (column == frame.keys.end()) {
    return had_help || view->help ? Act::kRedraw : Act::kNone;
  }
  view->sort = column->sort;
  view->first = 0;
  return Act::kRedraw;
}

}  // namespace fleet
