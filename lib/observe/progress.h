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

// Seconds left at the pace so far; negative where unknown.
double seconds_left(const ProgressState& state);

// "Epoch 1 (of 3) [=====>    ] 120/240  50%  ETA 0:12  loss 0.41", at most `width` columns: the bar
// gives way first, then the note is cut.
std::string progress_bar(const ProgressState& state, int width);
// "Epoch 1 (of 3): 120/240 (50%), ETA 0:12, loss 0.41"
std::string progress_text(const ProgressState& state);

// The launcher tells the rank whose output it shows on a terminal how wide that is.
inline constexpr char kEnvTerminalWidth[] = "FLEET_TERMINAL_WIDTH";

// Columns of the terminal behind a descriptor; 0 where it is none.
int terminal_width(int fd);

class Progress {
 public:
  struct Options {
    int width = 0;                // of the terminal; 0: plain lines
    double redraw_seconds = 0.1;  // a bar is redrawn no more often than this
    double plain_seconds = 10;    // a plain line no more often than this; 0: no plain lines at all
    Clock clock = monotonic_seconds;
    std::function<void(std::string_view)> write;  // must flush; default: standard output
  };
  explicit Progress(Options options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A new bar, starting now. `done`: steps done already.
  void start(std::string title, int64_t total, int64_t done = 0);
  void update(int64_t done, std::string note);
  // A line of output that must not be mixed up with the bar.
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
