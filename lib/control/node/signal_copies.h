// Tells a user's requests from copies of them. Pure: the time is an argument.
#pragma once

#include <signal.h>

#include <chrono>
#include <map>

namespace fleet {

// One request may reach a job as several equal signals: a terminal and pkill -f signal the launcher
// and the guardian, and timeout(1) signals a process and then its process group.
class SignalCopies {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Receiver { kLauncher, kGuardian, kWatchdog };

  // Equal signals are one request for this long.
  static constexpr std::chrono::milliseconds kWindow{1'000};
  // Ctrl-C comes from a person, who may press it again at once: a second SIGINT to the same process
  // is a request after this time.
  static constexpr std::chrono::milliseconds kDelivery{10};

  // Whether this signal is a request of its own.
  bool is_request(int signal, Receiver receiver, Time now) {
    Request& last = requests_[signal];
    const auto received = last.received.find(receiver);
    const bool pressed_again =
        signal == SIGINT && received != last.received.end() && now - received->second >= kDelivery;
    const bool copy = !last.received.empty() && now - last.begun < kWindow && !pressed_again;
    if (!copy) last = {now, {}};
    last.received[receiver] = now;
    return !copy;
  }

 private:
  struct Request {
    Time begun{};
    std::map<Receiver, Time> received;  // last
  };
  std::map<int, Request> requests_;  // the last one of each signal
};

}  // namespace fleet
