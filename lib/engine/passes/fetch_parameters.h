// Sharding of parameters: each lives on its owner only. The others fetch it for the part of a step
// that reads it.
#pragma once

#include <vector>

#include "passes/owners.h"

namespace fleet {

struct FetchOptions {
  GroupId group = -1;
  int stream = kCommunicationStream;
  int place = 0;            // index of this rank in the group
  double megabytes = 32;    // a segment is closed once it holds this much
  SectionId optimize = -1;  // of the updates
  SectionId remote = -1;    // of what only other ranks run, when updates run
  std::vector<int> savers;  // by index in the group: the rank of the job that saves what it owns
};

// Cuts the reads of parameters in each section into segments, in the order of use. Before a
// segment, its parameters (or their copies in a low type) are sent from their owners into
// temporaries, which the section's operations read instead. A segment is sent while the previous
// one computes, and not earlier, so that two of them are in memory at a time. Runs after the
// updates were appended. kUnsupported if another operation needs whole parameters. Returns the
// number of segments in a training step.
int fetch_parameters(Program& program, const Owners& owners, const FetchOptions& options);

}  // namespace fleet
