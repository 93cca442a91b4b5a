#include "observe/progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace fleet {

namespace {

constexpr int kMinimumBar = 10, kMaximumBar = 40;

std::string counts(const ProgressState& state) {
  if (state.total <= 0) return std::to_string(state.done);
  return std::to_string(state.done) + "/" + std::to_string(state.total);
}

std::string percent(const ProgressState& state) {
  return std::to_string(100 * std::min(state.done, state.total) / state.total) + "%";
}

std::string bar(const ProgressState& state, int columns) {
  const double part =
      std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0);
  const int inner = columns - 2;
  const int full = static_cast<int>(part * inner);
  std::string text = "[" + std::string(full, '=');
  if (full < inner) text += ">" + std::string(inner - full - 1, ' ');
  return text + "]";
}

}  // namespace

double seconds_left(const ProgressState& state) {
  const int64_t steps = state.done - state.done_before;
  if (state.total <= 0 || steps <= 0) return -1;
  const int64_t left = std::max<int64_t>(0, state.total - state.done);
  return state.elapsed / static_cast<double>(steps) * static_cast<double>(left);
}

std::string progress_bar(const ProgressState& state, int width) {
  std::string tail = " " + counts(state);
  if (state.total > 0) {
    tail += "  " + percent(state) + "  ETA " + format_duration(seconds_left(state));
  }
  if (!state.note.empty()) tail += "  " + state.note;
  std::string text = state.title;
  const int room = width - static_cast<int>(text.size() + tail.size()) - 1;
  if (state.total > 0 && room >= kMinimumBar) {
    text += " " + bar(state, std::min(room, kMaximumBar));
  }
  text += tail;
  if (static_cast<int>(text.size()) > width) text.resize(static_cast<size_t>(std::max(width, 0)));
  return text;
}

std::string progress_text(const ProgressState& state) {
  std::string text = state.title + ": " + counts(state);
  if (state.total > 0) {
    text += " (" + percent(state) + "), ETA " + format_duration(seconds_left(state));
  }
  if (!state.note.empty()) text += ", " + state.note;
  return text;
}

Progress::Progress(Options options) : options_(std::move(options)) {
  if (!options_.write) {
    options_.write = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    };
  }
}

Progress::~Progress() { finish(); }

void Progress::start(std::string title, int64_t total, int64_t done) {
  finish();
  begun_ = drawn_ = options_.clock();
  state_ = {.title = std::move(title), .done = done, .total = total, .done_before = done};
}

void Progress::update(int64_t done, std::string note) {
  const double now = options_.clock();
  state_.done = done;
  state_.note = std::move(note);
  state_.elapsed = now - begun_;
  if (options_.width > 0) {
    if (!visible_ || now - drawn_ >= options_.redraw_seconds) draw();
  } else if (options_.plain_seconds > 0 && now - drawn_ >= options_.plain_seconds) {
    options_.write(progress_text(state_) + "\n");
    drawn_ = now;
  }
}

void Progress::print(std::string_view line) {
  const bool redraw = visible_;
  erase();
  options_.write(std::string(line) + "\n");
  if (redraw) draw();
}

void Progress::finish() { erase(); }

void Progress::draw() {
  // Leaves one column free: some terminals wrap when the last column is filled. "\033[K" clears the
  // rest of a longer line.
  options_.write("\r" + progress_bar(state_, options_.width - 1) + "\033[K");
  drawn_ = options_.clock();
  visible_ = true;
}

void Progress::erase() {
  if (visible_) options_.write("\r\033[K");
  visible_ = false;
}

}  // namespace fleet
