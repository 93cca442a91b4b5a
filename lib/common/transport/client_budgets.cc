#include "transport/client_budgets.h"

#include <algorithm>

namespace fleet {

// An address without connections and with a full token bucket needs no entry.
void ConnectionBudget::forget_full(Time now) {
  if (addresses_.size() < forget_at_) return;
  std::erase_if(addresses_, [&](auto& each) {
    return each.second.in_order.empty() && each.second.tokens.full(now);
  });
  forget_at_ = std::max<size_t>(64, 2 * addresses_.size());
}

bool ConnectionBudget::remove(Address& of, const std::string& peer) {
  const auto found = of.unauthenticated.find(peer);
  if (found == of.unauthenticated.end()) return false;
  of.in_order.erase(found->second);
  of.unauthenticated.erase(found);
  --unauthenticated_;
  return true;
}

ConnectionBudget::Address& ConnectionBudget::largest() {
  return std::max_element(addresses_.begin(), addresses_.end(),
                          [](const auto& a, const auto& b) {
                            return a.second.in_order.size() < b.second.in_order.size();
                          })
      ->second;
}

ConnectionBudget::Decision ConnectionBudget::admit(const std::string& address,
                                                   const std::string& peer, Time now) {
  forget_full(now);
  const TokenBucket all({limits_.burst, limits_.per_second}, now);
  Address& of = addresses_.try_emplace(address, all).first->second;
  if (of.tokens.available_in(now).count() > 0) return {};
  Decision decision{.admitted = true};
  const bool full = of.in_order.size() >= static_cast<size_t>(limits_.burst);
  if (full || unauthenticated_ >= limits_.total) {
    Address& most = full ? of : largest();
    Address& victim = most.in_order.size() > of.in_order.size() ? most : of;
    if (victim.in_order.empty()) return {};
    decision.close = victim.in_order.front();
    remove(victim, decision.close);
  }
  of.tokens.take(now);
  remove(of, peer);  // in case the end of an earlier one was not noticed
  of.unauthenticated[peer] = of.in_order.insert(of.in_order.end(), peer);
  ++unauthenticated_;
  return decision;
}

void ConnectionBudget::authenticated(const std::string& address, const std::string& peer,
                                     Time now) {
  closed(address, peer, true, now);
}

void ConnectionBudget::closed(const std::string& address, const std::string& peer, bool well,
                              Time now) {
  const auto found = addresses_.find(address);
  if (found == addresses_.end() || !remove(found->second, peer)) return;
  if (well) found->second.tokens.give_back(now);
}

}  // namespace fleet
