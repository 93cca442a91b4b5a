#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/number_text.h"
#include "data/batch_slot.h"

namespace fleet::data {
namespace {

// This many in a row are not an accident, nor are this many reads that never end.
constexpr int64_t kInARow = 100;
constexpr size_t kMaxStalled = 16;

int64_t most_in_a_row(const Source& source) { return std::min(kInARow, source.size()); }

}  // namespace

void DamagedSampleLog::stalled(int64_t sample) {
  const MutexLock lock(mutex_);
  stalled_.insert(sample);
  any_stalled_ = true;
}

bool DamagedSampleLog::is_stalled(int64_t sample, std::string* why) const {
  if (!any_stalled_) return false;
  const MutexLock lock(mutex_);
  if (stalled_.size() > kMaxStalled) {
    throw Error(
        ErrorCode::kIo,
        "reading this file and " + std::to_string(stalled_.size() - 1) + " others never ends",
        source_.name(*stalled_.begin()), "check whether their file system responds");
  }
  if (!stalled_.contains(sample)) return false;
  *why = "reading it did not end within " + number_text(options_.read_timeout) + " s";
  return true;
}

bool DamagedSampleLog::all_unreadable(const std::vector<Damaged>& damaged) const {
  return !options_.fail && static_cast<int64_t>(damaged.size()) >= most_in_a_row(source_) &&
         std::ranges::all_of(damaged, &Damaged::unreadable);
}

void DamagedSampleLog::check(const std::vector<Damaged>& damaged) const {
  const Damaged& last = damaged.back();
  if (options_.fail) {
    throw Error(ErrorCode::kUsage, "damaged image (" + last.why + ")", source_.name(last.sample),
                "repair or remove it, or set data.on_damaged to skip");
  }
  const int64_t most = most_in_a_row(source_);
  if (static_cast<int64_t>(damaged.size()) < most) return;
  throw Error(ErrorCode::kUsage,
              std::to_string(most) + " images in a row are damaged, the last: " + last.why,
              source_.name(last.sample), "check the data");
}

void DamagedSampleLog::report(const std::vector<Damaged>& damaged) {
  for (const auto& [sample, why, unreadable] : damaged) {
    {
      const MutexLock lock(mutex_);
      if (!named_.insert(sample).second) continue;
    }
    spdlog::warn(
        "{}: damaged image ({}); {}", source_.name(sample), why,
        options_.evaluation ? "it does not count in the evaluation" : "the next image replaces it");
  }
}

void DamagedSampleLog::report_slow(int64_t sample, int64_t seconds) const {
  spdlog::warn("{}: has been read for {} s; does its file system respond?", source_.name(sample),
               seconds);
}

}  // namespace fleet::data
