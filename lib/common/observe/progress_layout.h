// The memory of a rank's progress. For the files of observe/ that write and read it.
#pragma once

#include <atomic>
#include <cstdint>

#include "observe/published_record.h"
#include "observe/rank_progress.h"
#include "observe/server_progress.h"

namespace fleet {

// "fleetP7": a file with other content is left alone.
inline constexpr uint64_t kProgressMagic = 0x0037507465656c66;

// Shared with another process: only lock-free atomics.
struct ProgressLayout {
  std::atomic<uint64_t> magic;
  PublishedRecord<RankProgress> progress;
  std::atomic<uint64_t> trace;             // the number of the request, and a file of the launcher
  PublishedRecord<ServerProgress> server;  // by a server
  PublishedRecord<ServerUse> use;          // by a trainer
};
static_assert(sizeof(ProgressLayout) <= 4096);

}  // namespace fleet
