#include "diagnosis/live_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "diagnosis/live_table.h"

namespace fleet {
namespace {

using Point = wire::LiveHistory::Point;
using Ranks = wire::LiveHistory::Ranks;

constexpr int64_t kFirstInterval = 1000, kMaxInterval = int64_t{1} << 40;  // ms
constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

size_t cells_of(const Point& point) {
  return std::max(static_cast<size_t>(point.ranks().own_ms_size()), point.ranks().input().size());
}

char byte_of(bool has, double percent) {
  if (!has || !std::isfinite(percent)) return static_cast<char>(LiveHistory::kUnknownShare);
  return static_cast<char>(static_cast<uint8_t>(std::clamp(std::round(percent), 0.0, 200.0)));
}

// The mean over the GPUs that report it.
std::optional<double> gpu_of(const wire::LiveRank& rank) {
  double sum = 0, count = 0;
  for (const wire::GpuUsage& gpu : rank.gpus()) {
    if (!gpu.has_utilization()) continue;
    sum += gpu.utilization();
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

void add_gpus(const LiveReport& report, Point* point) {
  double sum = 0, count = 0, fullest = -1;
  for (const wire::LiveRank& rank : report.ranks()) {
    for (const wire::GpuUsage& gpu : rank.gpus()) {
      if (gpu.has_utilization()) sum += gpu.utilization(), ++count;
      if (!gpu.has_memory_used() || gpu.memory_total() <= 0) continue;
      fullest = std::max(fullest, 100.0 * static_cast<double>(gpu.memory_used()) /
                                      static_cast<double>(gpu.memory_total()));
    }
  }
  if (count > 0) point->set_gpu(sum / count);
  if (fullest >= 0) point->set_gpu_memory(fullest);
}

void add_speed(const LiveReport& report, Point* point) {
  for (const wire::LiveRank& rank : report.ranks()) {
    if (rank.server()) continue;
    if (rank.has_step_ms()) point->set_step_ms(std::max(point->step_ms(), rank.step_ms()));
    if (rank.has_samples_per_second()) {
      point->set_samples_per_second(point->samples_per_second() + rank.samples_per_second());
    }
  }
}

void add_job(const LiveReport& report, Point* point) {
  if (report.has_step()) point->set_step(report.step());
  if (report.has_loss()) point->set_loss(report.loss());
  if (report.has_accuracy()) point->set_accuracy(report.accuracy());
  if (report.has_evaluation_accuracy()) {
    point->set_evaluation_accuracy(report.evaluation_accuracy());
  }
  add_speed(report, point);
  add_gpus(report, point);
}

// Each at the index of its number: some have not reported yet.
void add_ranks(const LiveReport& report, Ranks* ranks) {
  int count = 0;
  const auto is_shown = [](const wire::LiveRank& rank) {
    return !rank.server() && rank.rank() >= 0 && rank.rank() < LiveTable::kMaxRanks;
  };
  for (const wire::LiveRank& rank : report.ranks()) {
    if (is_shown(rank)) count = std::max(count, rank.rank() + 1);
  }
  ranks->mutable_own_ms()->Resize(count, kUnknown);
  ranks->mutable_cpu()->Resize(count, kUnknown);
  for (std::string* shares :
       {ranks->mutable_input(), ranks->mutable_peers(), ranks->mutable_gpu()}) {
    shares->assign(static_cast<size_t>(count), static_cast<char>(LiveHistory::kUnknownShare));
  }
  for (const wire::LiveRank& rank : report.ranks()) {
    if (!is_shown(rank)) continue;
    const int i = rank.rank();
    const auto at = static_cast<size_t>(i);
    const double waits = rank.has_exposed_share() ? rank.exposed_share() : 0;
    if (rank.has_step_ms()) {
      ranks->set_own_ms(i, static_cast<float>(rank.step_ms() * (1 - waits)));
    }
    if (rank.has_cpu()) ranks->set_cpu(i, static_cast<float>(rank.cpu()));
    const std::optional<double> gpu = gpu_of(rank);
    (*ranks->mutable_input())[at] = byte_of(rank.has_input_share(), 100 * rank.input_share());
    (*ranks->mutable_peers())[at] = byte_of(rank.has_exposed_share(), 100 * waits);
    (*ranks->mutable_gpu())[at] = byte_of(gpu.has_value(), gpu.value_or(0));
  }
}

}  // namespace

int64_t LiveHistory::milliseconds_at(Time now) const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - began_).count();
}

bool LiveHistory::wants(Time now) const {
  if (empty()) return true;
  const Point& last = history_.points(history_.points_size() - 1);
  return milliseconds_at(now) - last.at_ms() >= history_.interval_ms();
}

void LiveHistory::add(const LiveReport& report, Time now) {
  if (!wants(now)) return;
  if (empty()) {
    began_ = now;
    history_.set_interval_ms(kFirstInterval);
  }
  const bool with_ranks = history_.points_size() % rank_stride_ == 0;
  Point* point = history_.add_points();
  point->set_at_ms(milliseconds_at(now));
  add_job(report, point);
  if (with_ranks) {
    add_ranks(report, point->mutable_ranks());
    cells_ += cells_of(*point);
  }
  bound();
}

void LiveHistory::take(wire::LiveHistory other, Time now) {
  if (other.points().empty()) return;
  const Time began =
      now - std::chrono::milliseconds(std::clamp(other.now_ms(), int64_t{0}, kMaxInterval));
  const auto slack = std::chrono::milliseconds(2 * history_.interval_ms());
  if (!empty() && began > began_ + slack) return;  // its host has replaced a lost one
  history_ = std::move(other);
  history_.set_interval_ms(std::clamp(history_.interval_ms(), kFirstInterval, kMaxInterval));
  history_.clear_now_ms();
  began_ = began;
  cells_ = 0;
  rank_stride_ = 1;
  bool second = false;
  for (int i = 0; i < history_.points_size(); ++i) {
    if (!history_.points(i).has_ranks()) continue;
    cells_ += cells_of(history_.points(i));
    if (i > 0 && !second) rank_stride_ = i;
    second = second || i > 0;
  }
  bound();
}

void LiveHistory::forget_ranks() {
  for (Point& point : *history_.mutable_points()) drop_ranks(&point);
}

wire::LiveHistory LiveHistory::snapshot(Time now) const {
  wire::LiveHistory all = history_;
  if (!empty()) all.set_now_ms(milliseconds_at(now));
  return all;
}

void LiveHistory::bound() {
  while (history_.points_size() >= kMaxPoints) thin_points();
  while (cells_ > kMaxCells && rank_stride_ < kMaxPoints) thin_ranks();
}

// Keeps the first one.
void LiveHistory::thin_points() {
  auto& points = *history_.mutable_points();
  int kept = 0;
  for (int i = 0; i < points.size(); ++i) {
    if (i % 2 == 0) {
      points.SwapElements(kept++, i);
    } else {
      cells_ -= cells_of(points[i]);
    }
  }
  points.DeleteSubrange(kept, points.size() - kept);
  if (history_.interval_ms() < kMaxInterval) history_.set_interval_ms(2 * history_.interval_ms());
  rank_stride_ = std::max(rank_stride_ / 2, 1);
}

void LiveHistory::thin_ranks() {
  rank_stride_ *= 2;
  for (int i = 0; i < history_.points_size(); ++i) {
    if (i % rank_stride_ != 0) drop_ranks(history_.mutable_points(i));
  }
}

// clear_ranks() might keep the memory for later use.
void LiveHistory::drop_ranks(Point* point) {
  cells_ -= cells_of(*point);
  const std::unique_ptr<Ranks> dropped(point->release_ranks());
}

}  // namespace fleet
