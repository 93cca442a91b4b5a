#include "rendezvous/clock_offset.h"

#include <algorithm>
#include <cstdlib>

namespace fleet {
namespace {

constexpr size_t kKept = 32;
// Two clocks under NTP correction drift apart by at most this (2 x 500 ppm).
constexpr int64_t kDriftPerMillion = 1'000;

}  // namespace

void ClockOffset::sample(int64_t sent, int64_t host, int64_t received) {
  if (received < sent) return;
  const int64_t middle = sent + (received - sent) / 2, error = (received - sent + 1) / 2;
  // If the clock stood still (a suspended machine), its earlier samples are invalid.
  const auto expected = at(middle);
  if (expected && std::abs(expected->host_ns - host) > expected->error_ns + error) samples_.clear();
  if (samples_.size() == kKept) samples_.pop_front();
  samples_.push_back({middle, host - middle, error});
}

int64_t ClockOffset::error_of(const Sample& sample, int64_t own) {
  return sample.error + std::abs(own - sample.middle) / 1'000'000 * kDriftPerMillion;
}

std::optional<ClockOffset::Estimate> ClockOffset::at(int64_t own) const {
  if (samples_.empty()) return std::nullopt;
  const auto best = std::min_element(
      samples_.begin(), samples_.end(),
      [own](const Sample& a, const Sample& b) { return error_of(a, own) < error_of(b, own); });
  return Estimate{own + best->offset, error_of(*best, own)};
}

}  // namespace fleet
