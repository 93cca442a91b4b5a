#include "rendezvous/beats.h"

#include <algorithm>

namespace fleet {
namespace {

using std::chrono::milliseconds;

constexpr int kBeatsPerMs = 8;
constexpr milliseconds kEarlyBeat{5'000}, kEarlySilence{30'000}, kSettlesIn{5'000};

}  // namespace

JobTimes beats_for(int nnodes, JobTimes times) {
  times.beat = std::max(times.beat, milliseconds(nnodes / kBeatsPerMs));
  times.silence = std::max(times.silence, 3 * times.beat);
  if (nnodes < kLargeJob) return times;
  times.early_beat = std::max(times.beat, kEarlyBeat);
  times.early_silence = std::max(times.silence, kEarlySilence);
  // In a large job the world takes longer to reach all nodes.
  times.settles_in = std::max(kSettlesIn, milliseconds(nnodes));
  return times;
}

}  // namespace fleet
