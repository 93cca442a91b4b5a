// How much an operation computes and how long it takes, estimated from shapes alone.
#pragma once

#include <string>

#include "graph/program.h"

namespace fleet {

struct OpWork {
  double flops = 0;  // of convolutions and matrix products; others are bound by memory
  double bytes = 0;  // read and written, each variable once
};
// The shapes must be known.
OpWork work_of(const Program& program, const Op& op);

// A typical device. Only the ratio of two estimates is meant to be used.
struct ComputeRates {
  double flops, bytes;  // per second and part: a core, or a whole GPU
  int parts;            // that compute one operation together
  bool undivided;       // a stream has whole parts for itself
  double start;         // seconds before the work of an operation begins
  double together;      // more seconds if several parts compute it: they start and end together
  double uneven;        // and this share of their time, since they wait for the slowest part,
  double uneven_most;   // up to these seconds
  double join;          // seconds until all streams have reached the same point
  double hand_over;     // seconds from the end of an operation to one of another stream
  double exchange;      // bytes per second of what one stream wrote and another reads

  // Seconds of an operation on so many parts.
  double seconds(const OpWork& work, double on) const;
  // The parts of each of so many streams.
  double share(int streams) const;
};
ComputeRates rates_of(const std::string& backend, int cores);

}  // namespace fleet
