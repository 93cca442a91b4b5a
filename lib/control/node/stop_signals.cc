#include "node/stop_signals.h"

namespace fleet {

void StopSignals::on_stop_command(int signal, Time now) {
  if (commanded_ != 0) return;
  commanded_ = signal;
  commanded_at_ = now;
}

StopSignals::Meaning StopSignals::on_signal(int signal, Time now) {
  if (own_ != 0) return Meaning::kKill;
  own_ = signal;
  if (commanded_ == 0) return Meaning::kStop;
  return signal == commanded_ && now - commanded_at_ <= kFanOut ? Meaning::kCopy : Meaning::kKill;
}

}  // namespace fleet
