// The terminal of a person who watches a job with fleetrun attach: Ctrl-D detaches, and Ctrl-C says
// what it will do before it does it.
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/file.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// Tells requests to stop the job from a Ctrl-C that may come from habit: most programs that only
// show something end with it. Pure: the time is an argument.
class AttachInterrupts {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kWindow{5};

  // Whether this SIGINT is a request; if not, the person must learn what the next one does.
  // `typed`: a terminal sent it. A program that sends SIGINT means it.
  bool is_request(bool typed, Time now);

 private:
  std::optional<Time> warned_;
  bool requested_ = false;
};

// The descriptor of the keys: standard input; -1 if standard output is a pipe, because its reader
// may need them, as less does.
int attach_input();

// Catches SIGINT, unless it is ignored, and reads the terminal behind `input`. Leaves the
// terminal's mode as it is, so that it need not be restored: Ctrl-D arrives as the end of input.
// Other keys are discarded. In the background, it waits until the shell puts the process into the
// foreground. Use one at a time, in the loop's thread.
class AttachTerminal {
 public:
  struct Handlers {
    std::function<void()> detach;
    std::function<void()> interrupt;  // a SIGINT that is a request
  };
  AttachTerminal(EventLoop& loop, Handlers handlers, int input = attach_input());
  ~AttachTerminal();  // restores the signals' actions
  AttachTerminal(const AttachTerminal&) = delete;

  bool has_keys() const { return keys_.is_open(); }
  // Prints on standard error which keys do what, if a person can press them.
  void print_keys(const std::string& job_id) const;

 private:
  void catch_interrupts();
  void read_interrupts();
  void on_interrupt(bool typed);
  void read_keys();
  bool is_end_of_input() const;

  const Handlers handlers_;
  AttachInterrupts interrupts_;
  LoopDescriptor caught_, keys_;  // a pipe from the signal handler; the terminal
  UniqueFd caught_in_;
  LoopTimer retry_;
  struct sigaction background_read_ = {}, interrupt_ = {};  // the actions before
};

// After a detach, on standard error.
void print_detached(const std::string& job_id);

}  // namespace fleet
