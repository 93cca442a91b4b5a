#include "rendezvous/job_times.h"

#include <algorithm>

namespace fleet {
namespace {

using std::chrono::milliseconds;

constexpr int kHeartbeatsPerMs = 8;
constexpr milliseconds kStartupHeartbeatInterval{5'000}, kStartupMaxSilence{30'000},
    kStartupTime{5'000};

}  // namespace

milliseconds heartbeat_interval_for(milliseconds timeout) {
  return std::clamp(timeout / 12, milliseconds(20), milliseconds(1'000));
}

milliseconds max_silence_for(milliseconds timeout) {
  return timeout - heartbeat_interval_for(timeout);
}

JobTimes heartbeat_intervals_for(int nnodes, JobTimes times) {
  times.heartbeat_interval =
      std::max(times.heartbeat_interval, milliseconds(nnodes / kHeartbeatsPerMs));
  times.max_silence = std::max(times.max_silence, 3 * times.heartbeat_interval);
  if (nnodes < kLargeJob) return times;
  times.startup_heartbeat_interval = std::max(times.heartbeat_interval, kStartupHeartbeatInterval);
  times.startup_max_silence = std::max(times.max_silence, kStartupMaxSilence);
  // In a large job the world takes longer to reach all nodes.
  times.startup_time = std::max(kStartupTime, milliseconds(nnodes));
  return times;
}

}  // namespace fleet
