// Broadcasting of the second operand of an elementwise operation over the first.
#pragma once

#include <optional>

#include "tensor/shape.h"

namespace fleet {

struct OpDef;

// x viewed as [outer, middle, inner], y as [middle]. If y has one element, outer is 1.
struct Broadcast {
  int64_t outer = 1, middle = 1, inner = 1;
  bool same() const { return outer == 1 && inner == 1; }
};

// Paddle's rule: y's dimensions match those of x from `axis` on (-1: the last ones); dimensions of
// size 1 at either end of y are broadcast. Empty if the shapes do not match.
std::optional<Broadcast> broadcast_of(const Shape& x, const Shape& y, int64_t axis);

// An operation out = f(x, y) of this kind, with the attribute axis; out has x's shape and may take
// its memory. Refuses shapes that do not match.
void define_broadcasting(OpDef& def);

}  // namespace fleet
