// Finds the elements of tensors with the largest absolute values, exactly, and mostly in two passes
// over a small part of their memory.
#pragma once

#include <cstdint>
#include <vector>

namespace fleet::cpu {

// The bits of |x|. Their integer order equals the order of absolute values; NaN is the largest.
inline constexpr uint32_t kMagnitude = 0x7fffffff;

// Finds the k largest elements of a tensor. At least k elements reach the k-th largest of the tile
// maxima and, if k is small, not many more do. Few tiles contain one of them; the others are not
// read again. The elements above this bound are listed, and histograms of digits find the k-th of
// the list. If the list would be long (k is a large part of the tensor, or all large elements are
// in a few tiles), histograms of the tensor itself raise the bound, in the extreme to the k-th
// largest value.
//
// Not thread-safe: one object per kernel. Threads share the tensors of a call.
class TopK {
 public:
  static constexpr int64_t kTile = 64;
  static constexpr int64_t kChunk = 16384;  // processed by a thread at a time; whole tiles

  struct Tensor {
    const float* x;
    int64_t count;
    int64_t k;        // 1 to count
    int32_t* places;  // output: positions of the k largest, ascending; among equal ones the lowest
  };
  // A stretch of a tensor that begins at a tile boundary.
  struct Piece {
    int tensor;
    int64_t begin, end;
  };

  explicit TopK(std::vector<Tensor> tensors);

  // All tensors, in stretches of up to kChunk.
  const std::vector<Piece>& pieces() const { return pieces_; }
  // By tile of a tensor, the largest kMagnitude of its elements. Fill it before select().
  uint32_t* maxima(int tensor) { return maxima_.data() + states_[tensor].tiles; }
  void select();

 private:
  // Numbers of elements above a tensor's bound and equal to it: in a piece, or in those before it.
  struct Counts {
    int64_t above = 0, equal = 0;
  };
  struct State {
    int64_t tiles = 0;   // index of its first entry in maxima_
    int64_t pieces = 0;  // index of its first piece
    int64_t last_piece = 0;
    int64_t listed = 0;  // index of its first entry in the lists
    int64_t most = 0;    // capacity of its list
    uint32_t bound = 0;
    Counts counts = {};  // over the whole tensor
  };

  void bound_by_tiles(int tensor);
  void count_pieces(int64_t begin, int64_t end);
  void raise_bound(int tensor);
  void sum_counts(int tensor);
  void list_piece(int64_t piece);
  void choose_from_list(int tensor);
  template <typename Use>
  void visit_tiles(const Piece& piece, uint32_t least, const Use& use) const;
  template <typename Use>
  void visit(const Piece& piece, uint32_t least, const Use& use) const;

  const std::vector<Tensor> tensors_;
  std::vector<State> states_;
  std::vector<Piece> pieces_;
  std::vector<Counts> counts_;  // by piece
  std::vector<uint32_t> maxima_;
  std::vector<int32_t> listed_places_;
  std::vector<uint32_t> listed_magnitudes_;
};

}  // namespace fleet::cpu
