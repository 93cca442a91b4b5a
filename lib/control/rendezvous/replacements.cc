#include "rendezvous/replacements.h"

#include <algorithm>
#include <utility>

namespace fleet {
namespace {

constexpr size_t kMaxReplacementText = 4 << 10;

}  // namespace

void Replacements::add(const wire::ReplaceCommand& command, Time now) {
  wire::Replacement what;
  what.set_generation(command.generation());
  *what.mutable_exit() = command.exit();
  what.mutable_exit()->clear_tail();
  what.mutable_exit()->clear_error();
  what.set_message(command.message());
  what.mutable_message()->resize(std::min(what.message().size(), kMaxReplacementText));
  what.set_ordinal(command.ordinal());
  entries_.push_back({now, std::move(what)});
  if (entries_.size() > kKeptReplacements) entries_.pop_front();
}

void Replacements::update(const StepReport& report, int generation) {
  if (entries_.empty()) return;
  for (const RankSteps& steps : report.ranks()) {
    if (!steps.has_repeated_samples()) continue;
    const auto last = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) {
      return entry.what.exit().rank() == steps.rank();
    });
    if (last == entries_.rend() || last->what.generation() != generation) continue;
    last->what.set_repeated_samples(steps.repeated_samples());
    last->what.set_lost_samples(steps.lost_samples());
  }
}

void Replacements::add_to(Verdict* verdict, Time now) const {
  for (const Entry& entry : entries_) {
    wire::Replacement& added = *verdict->add_replacements() = entry.what;
    const auto before = std::chrono::duration_cast<std::chrono::milliseconds>(now - entry.at);
    added.set_before_ms(before.count());
  }
}

}  // namespace fleet
