// How much an operation computes and moves, estimated from shapes alone.
#pragma once

#include "graph/program.h"

namespace fleet {

struct OpWork {
  double flops = 0;  // the trait Arithmetic (ops/arithmetic.h); 0: memory bounds the operation
  double bytes = 0;  // read and written, each variable once
};
// The shapes must be known.
OpWork work_of(const Program& program, const Op& op);

}  // namespace fleet
