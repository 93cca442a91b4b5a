#include "rendezvous/restarts.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"

namespace fleet {
namespace {

constexpr size_t kShown = 10;

}  // namespace

Restarts::Restarts(RestartPolicy policy, int used, std::vector<GenerationResult> history)
    : policy_(policy), used_(used) {
  for (GenerationResult& end : history) {
    count(end);
    record(std::move(end));
  }
}

// The first generation is not a restart.
void Restarts::count(const GenerationResult& end) {
  const bool progress = progressed(end);
  if (end.kind() == Verdict::RESIZED) return;
  restarts_without_progress_ = progress || history_.empty() ? 0 : restarts_without_progress_ + 1;
}

bool Restarts::progressed(const GenerationResult& end) {
  const std::optional<int64_t> before = furthest_;
  if (end.has_step()) furthest_ = std::max(furthest_.value_or(end.step()), end.step());
  return furthest_ ? furthest_ != before
                   : std::chrono::milliseconds(end.ran_for_ms()) >= kProgressTime;
}

void Restarts::record(GenerationResult end) {
  if (history_.size() == kKeptGenerations) history_.erase(history_.begin());
  history_.push_back(std::move(end));
}

bool Restarts::replace() {
  if (counted() >= policy_.max_replacements) return false;
  ++replaced_;
  return true;
}

Restarts::Next Restarts::on_generation_end(GenerationResult end) {
  const bool resized = end.kind() == Verdict::RESIZED;
  count(end);
  record(std::move(end));
  if (resized) return Next::kRestart;
  if (counted() >= policy_.max_restarts) return Next::kFail;
  const int limit = policy_.no_progress_restarts;
  if (limit > 0 && restarts_without_progress_ >= limit) return Next::kNoProgress;
  ++used_;
  return Next::kRestart;
}

std::string history_text(const std::vector<GenerationResult>& history) {
  std::string text;
  const size_t first = history.size() - std::min(history.size(), kShown);
  if (first > 0) text = "\n  (" + std::to_string(first) + " earlier generations)";
  for (size_t i = first; i < history.size(); ++i) {
    const GenerationResult& end = history[i];
    text += "\n  generation " + std::to_string(end.generation()) + " (" +
            counted(end.nnodes(), "node") + ", " + counted(end.world_size(), "rank") +
            "): " + end.message().substr(0, end.message().find('\n'));
    if (end.has_step()) text += "; step " + std::to_string(end.step());
  }
  return text;
}

}  // namespace fleet
