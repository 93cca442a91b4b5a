#include "rendezvous/connection_budget.h"

#include <algorithm>

namespace fleet {
namespace {

// So that calls need not be looked at for ever because of who came once.
constexpr std::chrono::seconds kLookEvery{60};
constexpr size_t kRemembered = 1 << 16;  // of an address

}  // namespace

void ConnectionBudget::fill(Bucket& bucket, Time now) const {
  const double passed = std::chrono::duration<double>(now - bucket.filled).count();
  bucket.tokens = std::min(limits_.at_once, bucket.tokens + passed * limits_.each_second);
  bucket.filled = now;
}

// An address that has not been heard of for a while is like one that never was.
void ConnectionBudget::forget_full(Time now) {
  if (buckets_.size() < look_at_ && now < look_again_) return;
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    fill(it->second, now);
    if (it->second.tokens < limits_.at_once) {
      ++it;
      continue;
    }
    unproved_ -= it->second.unproved.size();
    it = buckets_.erase(it);
  }
  look_at_ = std::max<size_t>(64, 2 * buckets_.size());
  look_again_ = now + kLookEvery;
}

bool ConnectionBudget::admit(const std::string& address, const std::string& peer, Time now) {
  forget_full(now);
  Bucket& bucket = buckets_.try_emplace(address, Bucket{limits_.at_once, now, {}}).first->second;
  fill(bucket, now);
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  if (bucket.unproved.size() >= kRemembered) {  // a network of IPv6 has no end of connections
    unproved_ -= bucket.unproved.size();
    bucket.unproved.clear();
  }
  unproved_ += bucket.unproved.insert(peer).second;
  return true;
}

void ConnectionBudget::proved(const std::string& address, const std::string& peer, Time now) {
  forget_full(now);
  const auto found = buckets_.find(address);
  if (found == buckets_.end() || found->second.unproved.erase(peer) == 0) return;
  --unproved_;
  Bucket& bucket = found->second;
  fill(bucket, now);
  bucket.tokens = std::min(limits_.at_once, bucket.tokens + 1);
}

}  // namespace fleet
