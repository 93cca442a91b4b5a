// A rate limit with a burst: this many at once, then this many per second.
#pragma once

#include <algorithm>
#include <chrono>

namespace fleet {

// Not thread-safe; the time is passed in and never runs backwards.
class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Rate {
    double burst = 0;
    double per_second = 0;
  };

  TokenBucket(Rate rate, Time now) : rate_(rate), tokens_(rate.burst), filled_(now) {}

  bool take(Time now) {
    fill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  size_t tokens(Time now) {
    fill(now);
    return tokens_ < 1 ? 0 : static_cast<size_t>(tokens_);
  }
  // Takes tokens even beyond those available; available_in() then says when the debt is paid.
  void take_anyway(double tokens, Time now) {
    fill(now);
    tokens_ -= tokens;
  }
  void give_back(Time now) {
    fill(now);
    tokens_ = std::min(rate_.burst, tokens_ + 1);
  }
  bool full(Time now) const {
    TokenBucket then = *this;
    then.fill(now);
    return then.tokens_ >= rate_.burst;
  }
  // Time until a token is available; 0 if one is.
  std::chrono::milliseconds available_in(Time now) {
    fill(now);
    if (tokens_ >= 1) return std::chrono::milliseconds(0);
    return std::chrono::milliseconds(
        1 + static_cast<int64_t>((1 - tokens_) / std::max(rate_.per_second, 1e-3) * 1e3));
  }

 private:
  void fill(Time now) {
    const double passed = std::chrono::duration<double>(now - filled_).count();
    tokens_ = std::min(rate_.burst, tokens_ + passed * rate_.per_second);
    filled_ = now;
  }

  Rate rate_;
  double tokens_;
  Time filled_;
};

}  // namespace fleet
