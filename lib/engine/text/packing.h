// Which tokens go into which window of a batch: pure arithmetic on lengths, no tokens.
//
// Two ways: pack_documents() places whole documents by best fit, with little padding, so that no
// window needs tokens of a document that it does not hold; StreamWindows cuts one stream of tokens
// wherever a window ends. Both are deterministic. Immutable values: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fleet::text {

// Tokens [begin, begin + tokens) of one document.
struct PackedPiece {
  int64_t document = 0;  // index into the lengths
  int64_t begin = 0;
  int64_t tokens = 0;
  friend bool operator==(const PackedPiece&, const PackedPiece&) = default;
};

// Treatment of a document that is longer than a window.
enum class LongDocuments {
  kSplit,     // it becomes pieces of a whole window each, and a rest
  kTruncate,  // its first window stays
  kDrop,      // it is left out
};

class PackedWindows {
 public:
  size_t size() const { return starts_.size() - 1; }
  // The pieces of one window in the order of their tokens; together at most a window's size.
  std::span<const PackedPiece> window(size_t index) const {
    return std::span(pieces_).subspan(starts_[index], starts_[index + 1] - starts_[index]);
  }
  int64_t tokens() const { return tokens_; }      // that are placed
  int64_t left_out() const { return left_out_; }  // tokens that kTruncate or kDrop leave out

 private:
  friend PackedWindows pack_documents(std::span<const int64_t>, int64_t, LongDocuments);
  std::vector<PackedPiece> pieces_;
  std::vector<size_t> starts_ = {0};
  int64_t tokens_ = 0, left_out_ = 0;
};

// Best-fit decreasing, as "bfd" of trl: the longest piece first (of equal ones the first document),
// each into the window with the least room that it fits, of equal ones into the one that came to
// this room first. Empty documents have no piece. Windows are in the order in which their first
// piece was placed, so the fullest come first: shuffle them. O(n log window).
// kUsage if the window is smaller than 1 or a length is negative.
PackedWindows pack_documents(std::span<const int64_t> lengths, int64_t window,
                             LongDocuments longer = LongDocuments::kSplit);

// Cuts a stream of tokens into windows of inputs, each with one token more for the last label:
// window i has the inputs [begin(i), begin(i) + window) and the labels one token further. What is
// left behind the last whole window is not used, as in llm.c.
class StreamWindows {
 public:
  // stride: distance between the first tokens of two windows; 0: `window`, no overlap.
  // kUsage if the window is smaller than 1 or another number is negative.
  StreamWindows(int64_t tokens, int64_t window, int64_t stride = 0);
  int64_t size() const { return size_; }
  int64_t begin(int64_t index) const { return index * stride_; }

 private:
  int64_t stride_, size_;
};

}  // namespace fleet::text
