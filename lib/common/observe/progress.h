// Progress of a known number of steps: a bar that redraws itself on a terminal, plain lines
// elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace fleet {

struct ProgressState {
  std::string title;  // "Epoch 1 (of 3)"
  int64_t done = 0;
  int64_t total = 0;        // 0: unknown, no bar and no ETA
  double elapsed = 0;       // seconds since the first of these steps began
  int64_t done_before = 0;  // steps done before `elapsed` began to count (a resumed epoch)
  std::string note;         // "loss 0.41 acc1 0.87"
};

// Seconds left at the speed so far; negative if unknown.
double seconds_left(const ProgressState& state);

// "Epoch 1 (of 3) [=====>    ] 120/240  50%  ETA 0:12  loss 0.41", at most `width` columns: first
// the bar shrinks, then the note is cut.
std::string progress_bar(const ProgressState& state, int width);
// "Epoch 1 (of 3): 120/240 (50%), ETA 0:12, loss 0.41"
std::string progress_text(const ProgressState& state);

// The launcher sets this to the terminal's width for the rank whose output it shows there.
inline constexpr char kEnvTerminalWidth[] = "FLEET_TERMINAL_WIDTH";

class Progress {
 public:
  struct Options {
    int width = 0;                // terminal columns; 0: plain lines
    double redraw_seconds = 0.1;  // shortest time between two redraws of the bar
    double plain_seconds = 10;    // shortest time between two plain lines; 0: no plain lines
    Clock clock = monotonic_seconds;
    std::function<void(std::string_view)> write;  // must flush; default: standard output
  };
  explicit Progress(Options options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Starts a new bar. `done`: steps already done.
  void start(std::string title, int64_t total, int64_t done = 0);
  void update(int64_t done, std::string note);
  // Prints a line of output without mixing it up with the bar.
  void print(std::string_view line);
  // Removes the bar.
  void finish();

 private:
  void draw();
  void erase();
  Options options_;
  ProgressState state_;
  double begun_ = 0, drawn_ = 0;
  bool visible_ = false;
};

}  // namespace fleet
