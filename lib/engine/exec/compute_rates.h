// How fast a typical device of a backend computes: for the choice of streams before a job runs.
#pragma once

#include "graph/program.h"

namespace fleet {

// How much an operation computes and moves, estimated from shapes alone.
struct OpWork {
  double flops = 0;  // the trait Arithmetic (ops/arithmetic.h); 0: memory bounds the operation
  double bytes = 0;  // read and written, each variable once
};
// The shapes must be known.
OpWork work_of(const Program& program, const Op& op);

// Only the ratio of two estimates is meant to be used. The defaults describe a large GPU.
struct ComputeRates {
  double flops = 3e13, bytes = 1.5e12;  // per second and part: a core, or a whole GPU
  int parts = 1;                        // that compute one operation together
  bool undivided = false;               // a stream has whole parts for itself
  double start = 3e-6;                  // seconds before the work of an operation begins
  // If several parts compute an operation, they start and end together. That takes these seconds,
  // and as a share of their time the wait for the slowest part, up to `uneven_most` seconds.
  double together = 0, uneven = 0, uneven_most = 0;
  double join = 2e-6;       // seconds until all streams have reached the same point
  double hand_over = 2e-6;  // seconds from the end of an operation to one of another stream
  double exchange = 1e15;   // bytes per second that one stream wrote and another reads

  // Seconds of an operation on so many parts.
  double seconds(const OpWork& work, double on) const;
  // The parts of each of so many streams.
  double share(int streams) const;
};

}  // namespace fleet
