#include "node/stop_signals.h"

namespace fleet {

void StopSignals::on_order(int signal, Time now) {
  if (ordered_ != 0) return;
  ordered_ = signal;
  ordered_at_ = now;
}

StopSignals::Meaning StopSignals::on_signal(int signal, Time now) {
  if (own_ != 0) return Meaning::kKill;
  own_ = signal;
  if (ordered_ == 0) return Meaning::kStop;
  return signal == ordered_ && now - ordered_at_ <= kFanOut ? Meaning::kCopy : Meaning::kKill;
}

}  // namespace fleet
