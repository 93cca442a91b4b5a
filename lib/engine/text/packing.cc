#include "text/packing.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>

#include "base/error.h"

namespace fleet::text {
namespace {

void check_window_size(int64_t window) {
  if (window >= 1) return;
  throw Error(ErrorCode::kUsage, "a window of " + std::to_string(window) + " tokens", {},
              "give a length of at least 1");
}

// The pieces of all documents, the longest first.
std::vector<PackedPiece> pieces_to_place(std::span<const int64_t> lengths, int64_t window,
                                         LongDocuments longer) {
  std::vector<PackedPiece> pieces;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto document = static_cast<int64_t>(i);
    if (lengths[i] < 0) {
      throw Error(
          ErrorCode::kUsage,
          "document " + std::to_string(i) + " has " + std::to_string(lengths[i]) + " tokens", {},
          "correct its length");
    }
    if (lengths[i] > window && longer == LongDocuments::kDrop) continue;
    const int64_t end =
        longer == LongDocuments::kTruncate ? std::min(lengths[i], window) : lengths[i];
    for (int64_t begin = 0; begin < end; begin += window) {
      pieces.push_back(
          {.document = document, .begin = begin, .tokens = std::min(window, end - begin)});
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const PackedPiece& a, const PackedPiece& b) { return a.tokens > b.tokens; });
  return pieces;
}

}  // namespace

PackedWindows pack_documents(std::span<const int64_t> lengths, int64_t window,
                             LongDocuments longer) {
  check_window_size(window);
  const std::vector<PackedPiece> pieces = pieces_to_place(lengths, window, longer);
  std::map<int64_t, std::deque<size_t>> by_room;  // the windows with this much room
  std::vector<size_t> window_of(pieces.size()), counts;
  PackedWindows packed;
  for (size_t i = 0; i < pieces.size(); ++i) {
    int64_t room = window;
    const auto fits = by_room.lower_bound(pieces[i].tokens);
    if (fits == by_room.end()) {
      window_of[i] = counts.size();
      counts.push_back(0);
    } else {
      room = fits->first;
      window_of[i] = fits->second.front();
      fits->second.pop_front();
      if (fits->second.empty()) by_room.erase(fits);
    }
    ++counts[window_of[i]];
    packed.tokens_ += pieces[i].tokens;
    if (room > pieces[i].tokens) by_room[room - pieces[i].tokens].push_back(window_of[i]);
  }
  for (const size_t count : counts) packed.starts_.push_back(packed.starts_.back() + count);
  std::vector<size_t> next(packed.starts_.begin(), packed.starts_.end() - 1);
  packed.pieces_.resize(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) packed.pieces_[next[window_of[i]]++] = pieces[i];
  for (const int64_t length : lengths) packed.left_out_ += length;
  packed.left_out_ -= packed.tokens_;
  return packed;
}

StreamWindows::StreamWindows(int64_t tokens, int64_t window, int64_t stride) {
  check_window_size(window);
  if (tokens < 0 || stride < 0) {
    throw Error(ErrorCode::kUsage, "a negative number of tokens", {}, "give a positive number");
  }
  stride_ = stride == 0 ? window : stride;
  size_ = tokens <= window ? 0 : (tokens - window - 1) / stride_ + 1;
}

}  // namespace fleet::text
