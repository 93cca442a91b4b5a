// Sums over whole tensors, in pieces whose bounds, and so the result, do not depend on the number
// of threads.
#pragma once

#include <vector>

#include "backend/cpu/elementwise.h"

namespace fleet::cpu {

struct Piece {
  const float* data;
  int64_t count;
};

// The elements of a tensor, including padding, in pieces.
inline void append_pieces(std::vector<Piece>& pieces, const Argument& argument) {
  const int64_t count = argument.layout.elements();
  for (int64_t begin = 0; begin < count; begin += kReduceElements) {
    pieces.push_back({argument.as<float>() + begin, std::min(kReduceElements, count - begin)});
  }
}

inline size_t pieces_workspace(int64_t pieces) {
  return static_cast<size_t>(pieces) * sizeof(double);
}

inline int64_t pieces_of(int64_t elements) {
  return (elements + kReduceElements - 1) / kReduceElements;
}

// The sum of function(piece). partial: memory for one double per piece.
template <double (*function)(const float* x, int64_t count)>
double reduce_pieces(const std::vector<Piece>& pieces, double* partial) {
  const int64_t count = static_cast<int64_t>(pieces.size());
#pragma omp parallel for if (count > 1)
  for (int64_t i = 0; i < count; ++i) partial[i] = function(pieces[i].data, pieces[i].count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += partial[i];
  return sum;
}

// Accepts every input in its own layout: padding holds zeros, which add nothing.
inline void any_layouts(LayoutQuery& query) {
  int64_t pieces = 0;
  for (int i = 0; i < query.input_count(); ++i) {
    if (query.input(i) && !query.input(i)->is_opaque()) query.need(i, *query.input(i));
    pieces += pieces_of(query.needed(i).elements());
  }
  query.workspace(pieces_workspace(pieces));
}

}  // namespace fleet::cpu
