#include "daemon/console_log.h"

#include <algorithm>

namespace fleet {

void ConsoleLog::add(bool error, std::string_view text) {
  constexpr size_t kPiece = 4096;  // small pieces are merged to limit their overhead
  const bool joins = !pieces_.empty() && pieces_.back().error == error &&
                     pieces_.back().text.size() + text.size() <= kPiece;
  if (joins) {
    pieces_.back().text += text;
  } else {
    pieces_.push_back({error, std::string(text)});
  }
  end_ += text.size();
  // A small piece still costs the size of a Piece.
  const auto too_much = [this] {
    return end_ - begin_ > limit_ || pieces_.size() > limit_ / sizeof(Piece) + 1;
  };
  while (pieces_.size() > 1 && too_much()) {
    begin_ += pieces_.front().text.size();
    pieces_.pop_front();
  }
}

ConsoleLog::Piece ConsoleLog::next(uint64_t* at, size_t most) const {
  *at = std::max(*at, begin_);
  uint64_t start = begin_;
  for (const Piece& piece : pieces_) {
    if (*at < start + piece.text.size()) {
      Piece found{piece.error, piece.text.substr(*at - start, most)};
      *at += found.text.size();
      return found;
    }
    start += piece.text.size();
  }
  return {};
}

}  // namespace fleet
