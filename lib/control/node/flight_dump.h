// A dump of PyTorch's flight recorder as a rank's calls of collectives. Format: the pickle of
// FlightRecorder::dump() (torch/csrc/distributed/c10d/FlightRecorderDetail.hpp), version 2.x.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rendezvous/types.h"

namespace fleet {

inline constexpr int64_t kMaxFlightDump = int64_t{64} << 20;  // bytes

// The rank that wrote a dump, and when it is read.
struct FlightRank {
  int rank = 0;
  int world_size = 0;     // 0: unknown
  int64_t unix_time = 0;  // ns
};

// The groups of the rank, each with the calls around the first that is not done. The caller sets
// local_rank and state. Nothing in the dump is executed. kUsage naming the path if it is not a
// whole dump.
RankCollectives calls_of_flight_dump(std::string_view bytes, const std::string& path,
                                     const FlightRank& of);

}  // namespace fleet
