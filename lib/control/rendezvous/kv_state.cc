#include "rendezvous/kv_state.h"

#include "base/clock.h"
#include "base/text.h"

namespace fleet {
namespace {

Error full(const std::string& key, const std::string& what) {
  return Error(ErrorCode::kUsage, what, "key '" + key.substr(0, 64) + "'",
               "the store is for ids and addresses, not for data");
}

}  // namespace

void KvState::open(int generation) {
  while (!waits_.empty()) {
    const auto& [ticket, wait] = *waits_.begin();
    answer(ticket, {{},
                    Error(ErrorCode::kStale,
                          "generation " + std::to_string(generation_) + " is over", wait.key,
                          "this rank belongs to an earlier generation of the job and should end")});
  }
  values_.clear();
  bytes_ = 0;
  generation_ = generation;
  closed_.reset();
}

void KvState::close(const Error& why) {
  if (closed_) return;
  closed_ = why;
  while (!waits_.empty()) answer(waits_.begin()->first, {{}, why});
  values_.clear();
  bytes_ = 0;
}

std::optional<Error> KvState::refusal(int generation, const std::string& key) const {
  if (key.size() > limits_.key) {
    return full(key, "longer than " + std::to_string(limits_.key) + " bytes");
  }
  if (generation_ != 0 && generation != generation_) {
    return Error(ErrorCode::kStale,
                 "the job is at generation " + std::to_string(generation_) +
                     ", this rank at generation " + std::to_string(generation),
                 key, "it belongs to another generation of the job and should end");
  }
  if (closed_) return closed_;
  if (generation_ == 0) {
    return Error(ErrorCode::kStale, "the job is not running yet", key,
                 "ranks are started by fleetrun");
  }
  return std::nullopt;
}

std::optional<Error> KvState::store(const std::string& key, std::string_view value) {
  if (value.size() > limits_.value) {
    return full(key, std::to_string(value.size()) + " bytes; a value has at most " +
                         std::to_string(limits_.value));
  }
  const auto found = values_.find(key);
  const size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
  const size_t bytes = bytes_ - before + key.size() + value.size();
  if (bytes > limits_.total) {
    return full(key, "the job's store is full (" + std::to_string(limits_.total) + " bytes)");
  }
  if (found == values_.end() && values_.size() >= limits_.keys) {
    return full(key, "the job's store is full (" + std::to_string(limits_.keys) + " keys)");
  }
  bytes_ = bytes;
  if (found != values_.end()) {
    found->second = value;
  } else {
    values_.emplace(key, value);
  }
  const auto waiting = by_key_.find(key);
  if (waiting == by_key_.end()) return std::nullopt;
  const std::set<Ticket> tickets = waiting->second;
  for (const Ticket ticket : tickets) answer(ticket, {std::string(value), {}});
  return std::nullopt;
}

std::optional<Error> KvState::set(int generation, const std::string& key, std::string_view value) {
  if (auto error = refusal(generation, key)) return error;
  return store(key, value);
}

KvState::Answer KvState::add(int generation, const std::string& key, int64_t amount) {
  if (auto error = refusal(generation, key)) return {{}, error};
  long long sum = 0;
  const auto found = values_.find(key);
  if (found != values_.end() && !parse_int(found->second, &sum)) {
    return {{}, Error(ErrorCode::kUsage, "the value is not a counter", "key '" + key + "'")};
  }
  if (__builtin_add_overflow(sum, static_cast<long long>(amount), &sum)) {
    return {{}, Error(ErrorCode::kUsage, "the counter overflows", "key '" + key + "'")};
  }
  const std::string text = std::to_string(sum);
  if (auto error = store(key, text)) return {{}, error};
  return {text, {}};
}

KvState::Ticket KvState::get(int generation, const std::string& key, Time now, Time deadline,
                             Done done) {
  const Ticket ticket = ++last_ticket_;
  waits_.emplace(ticket, Wait{key, now, deadline, std::move(done)});
  by_key_[key].insert(ticket);
  by_deadline_.emplace(deadline, ticket);
  const auto found = values_.find(key);
  if (auto error = refusal(generation, key)) {
    answer(ticket, {{}, error});
  } else if (found != values_.end()) {
    answer(ticket, {found->second, {}});
  } else if (waits_.size() > limits_.waiters) {
    answer(ticket, {{}, full(key, "too many waits for keys")});
  } else if (deadline <= now) {
    advance(now);
  }
  return ticket;
}

bool KvState::cancel(Ticket ticket) {
  const auto wait = waits_.find(ticket);
  if (wait == waits_.end()) return false;
  const auto same_key = by_key_.find(wait->second.key);
  same_key->second.erase(ticket);
  if (same_key->second.empty()) by_key_.erase(same_key);
  by_deadline_.erase({wait->second.deadline, ticket});
  waits_.erase(wait);
  return true;
}

void KvState::answer(Ticket ticket, Answer with) {
  ready_.push_back(
      [done = std::move(waits_.at(ticket).done), with = std::move(with)] { done(with); });
  cancel(ticket);
}

void KvState::advance(Time now) {
  while (!by_deadline_.empty() && by_deadline_.begin()->first <= now) {
    const Ticket ticket = by_deadline_.begin()->second;
    const Wait& wait = waits_.at(ticket);
    const auto waited =
        std::chrono::duration_cast<std::chrono::milliseconds>(wait.deadline - wait.since);
    answer(ticket, {{},
                    Error(ErrorCode::kTimeout, "no rank set the key within " + seconds_text(waited),
                          wait.key)});
  }
}

std::optional<KvState::Time> KvState::next_deadline() const {
  if (by_deadline_.empty()) return std::nullopt;
  return by_deadline_.begin()->first;
}

}  // namespace fleet
