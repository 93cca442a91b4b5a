#include "rendezvous/client_budgets.h"

#include <algorithm>
#include <utility>

namespace fleet {
void StreamBudget::admit(const std::string& address, const std::string& peer, Time now) {
  const TokenBucket all(limits_.address_opens, now);
  addresses_.try_emplace(address, all)
      .first->second.connections.try_emplace(peer, TokenBucket(limits_.connection_opens, now));
}

StreamBudget::Use* StreamBudget::find(const std::string& address, const std::string& peer,
                                      Address** of) {
  const auto found = addresses_.find(address);
  if (found == addresses_.end()) return nullptr;
  *of = &found->second;
  const auto use = found->second.connections.find(peer);
  return use == found->second.connections.end() ? nullptr : &use->second;
}

void StreamBudget::update(const std::string& address, const std::string& peer, size_t streams,
                          uint64_t opened, size_t partial, Time now) {
  Address* of = nullptr;
  Use* use = find(address, peer, &of);
  if (!use) return;
  of->streams += streams - use->streams;
  streams_ += streams - use->streams;
  use->streams = streams;
  while (opened > 0 && use->opens.take(now)) --opened;
  of->opens.take_anyway(static_cast<double>(opened), now);
  opens_.take_anyway(static_cast<double>(opened), now);
  set_partial(use, peer, partial);
}

void StreamBudget::set_partial(Use* use, const std::string& peer, size_t partial) {
  partial_ += partial - use->partial;
  use->partial = partial;
  if (partial > 0 && use->begun == 0) {
    use->begun = ++last_message_;
    messages_.emplace(use->begun, peer);
  } else if (partial == 0 && use->begun != 0) {
    messages_.erase(use->begun);
    use->begun = 0;
  }
}

void StreamBudget::closed(const std::string& address, const std::string& peer, Time now) {
  Address* of = nullptr;
  if (!find(address, peer, &of)) return;
  update(address, peer, 0, 0, 0, now);
  of->connections.erase(peer);
  if (addresses_.size() >= forget_at_) forget_unused(now);
}

// Keeps an address until its rate is full again; a returning one would otherwise count as new.
void StreamBudget::forget_unused(Time now) {
  std::erase_if(addresses_, [&](auto& each) {
    return each.second.connections.empty() && each.second.opens.full(now);
  });
  forget_at_ = std::max<size_t>(64, 2 * addresses_.size());
}

std::optional<StreamBudget::Excess> StreamBudget::excess(const std::string& address) const {
  const auto fewer = [](const auto& a, const auto& b) {
    return a.second.streams < b.second.streams;
  };
  auto of = addresses_.find(address);
  const bool too_many = of != addresses_.end() && of->second.streams > limits_.per_address;
  if (!too_many && streams_ <= limits_.total) return std::nullopt;
  if (!too_many) of = std::max_element(addresses_.begin(), addresses_.end(), fewer);
  const auto& all = of->second.connections;
  return Excess{of->first, std::max_element(all.begin(), all.end(), fewer)->first};
}

size_t StreamBudget::may_open(const std::string& address, const std::string& peer, Time now) {
  Address* of = nullptr;
  Use* use = find(address, peer, &of);
  if (!use) return 0;
  return use->opens.tokens(now) + std::min(of->opens.tokens(now), opens_.tokens(now));
}

std::chrono::milliseconds StreamBudget::wait_for(const std::string& address,
                                                 const std::string& peer, Time now) {
  Address* of = nullptr;
  Use* use = find(address, peer, &of);
  if (!use) return std::chrono::milliseconds(0);
  return std::min(use->opens.available_in(now),
                  std::max(of->opens.available_in(now), opens_.available_in(now)));
}

bool StreamBudget::may_continue(const std::string& peer) const {
  return partial_ < limits_.partial_bytes || messages_.empty() || messages_.begin()->second == peer;
}

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
    if (victim.in_order.empty() || (&victim == &of && !limits_.evict_oldest)) return {};
    decision.close = limits_.evict_oldest ? victim.in_order.front() : victim.in_order.back();
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
