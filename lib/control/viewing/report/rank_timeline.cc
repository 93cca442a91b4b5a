#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/number_text.h"
#include "viewing/report/run_report.h"
#include "viewing/runs/curve_chart.h"

namespace fleet {
namespace {

constexpr double kWidth = 960, kLeft = 72, kRight = 14, kTop = 26, kRow = 16, kGap = 4;
constexpr size_t kMaxRows = 64, kMaxCells = 6000;

std::string rectangle(double x, double y, double width, double height) {
  return format_printf("M%.1f %.1fh%.1fv%.1fh%.1fz", x, y, width, height, -width);
}

// Means over neighbouring intervals, so that there are at most `most`.
std::vector<RankInterval> merged(const std::vector<RankInterval>& all, size_t most) {
  const size_t each = (all.size() + most - 1) / most;
  if (each <= 1) return all;
  std::vector<RankInterval> fewer;
  for (size_t first = 0; first < all.size(); first += each) {
    RankInterval sum = all[first];
    size_t count = 1;
    for (size_t i = first + 1; i < std::min(first + each, all.size()); ++i) {
      if (all[i].batch_time.size() != sum.batch_time.size()) break;
      if (all[i].begin > sum.end + 1) break;  // a restart in between
      for (size_t r = 0; r < sum.batch_time.size(); ++r) {
        sum.batch_time[r] += all[i].batch_time[r];
        sum.data_time[r] += all[i].data_time[r];
        sum.wait_time[r] += all[i].wait_time[r];
      }
      sum.end = all[i].end;
      ++count;
    }
    first -= each - count;
    fewer.push_back(std::move(sum));  // sums serve as well: only shares are shown
  }
  return fewer;
}

size_t rank_count(const RunHistory& run) {
  size_t count = 0;
  for (const RankInterval& interval : run.ranks)
    count = std::max(count, interval.batch_time.size());
  return count;
}

// By number; of many ranks those that waited least for the others, who waited for them.
std::vector<size_t> shown_ranks(const RunHistory& run) {
  std::vector<size_t> ranks(rank_count(run));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (ranks.size() <= kMaxRows) return ranks;
  std::vector<double> waited(ranks.size());
  for (const RankInterval& interval : run.ranks) {
    for (size_t r = 0; r < interval.wait_time.size(); ++r) {
      if (std::isfinite(interval.wait_time[r])) waited[r] += interval.wait_time[r];
    }
  }
  std::ranges::stable_sort(ranks, {}, [&](size_t rank) { return waited[rank]; });
  ranks.resize(kMaxRows);
  std::ranges::sort(ranks);
  return ranks;
}

class Timeline {
 public:
  explicit Timeline(const RunReport& report)
      : run_(report.run), ranks_(shown_ranks(report.run)), begin_(run_.begin), end_(run_.end) {}

  std::string svg() const {
    if (run_.ranks.empty() || !(end_ > begin_)) return {};
    const double height =
        kTop + kRow + kGap + static_cast<double>(ranks_.size()) * (kRow + kGap) + 24;
    return format_printf(
               "<svg class=\"chart timeline\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
               "viewBox=\"0 0 %g %g\">\n",
               kWidth, height) +
           job_row() + rank_rows() + axis(height) + "</svg>\n";
  }

 private:
  double x(double time) const {
    const double at = (time - begin_) / (end_ - begin_);
    return kLeft + std::clamp(at, 0.0, 1.0) * (kWidth - kLeft - kRight);
  }
  static std::string label(double y, const std::string& text) {
    return format_printf("<text class=\"label end\" x=\"%g\" y=\"%g\">", kLeft - 8, y + kRow - 4) +
           text + "</text>\n";
  }

  std::string job_row() const {
    std::string evaluations;
    for (const JsonObject& test : run_.tests) {
      const double end = test.number("time"), seconds = test.number("seconds");
      if (!std::isfinite(end) || !std::isfinite(seconds)) continue;
      const double from = x(end - seconds);
      evaluations += rectangle(from, kTop, std::max(x(end) - from, 1.0), kRow);
    }
    std::string starts;
    for (const JsonObject& start : run_.starts) {
      const double time = start.number("time");
      if (std::isfinite(time)) starts += rectangle(x(time), kTop, 2, kRow);
    }
    return label(kTop, "job") + "<path class=\"evaluates\" d=\"" + evaluations +
           "\"/><path class=\"starts\" d=\"" + starts + "\"/>\n";
  }

  std::string rank_rows() const {
    const auto intervals =
        merged(run_.ranks, std::max<size_t>(kMaxCells / std::max<size_t>(ranks_.size(), 1), 20));
    std::string computes, reads, waits, labels;
    double y = kTop + kRow + kGap;
    for (const size_t rank : ranks_) {
      labels += label(y, "rank " + std::to_string(rank));
      for (const RankInterval& interval : intervals) {
        if (rank >= interval.batch_time.size()) continue;
        const double whole = interval.batch_time[rank];
        if (!(whole > 0)) continue;
        const auto share = [&](double part) {
          return std::isfinite(part) ? std::clamp(part / whole, 0.0, 1.0) * kRow : 0;
        };
        const double data = share(interval.data_time[rank]);
        const double wait = std::min(share(interval.wait_time[rank]), kRow - data);
        const double from = x(interval.begin), width = std::max(x(interval.end) - from, 0.3);
        if (data >= 0.2) reads += rectangle(from, y, width, data);
        if (wait >= 0.2) waits += rectangle(from, y + data, width, wait);
        computes += rectangle(from, y + data + wait, width, kRow - data - wait);
      }
      y += kRow + kGap;
    }
    return labels + "<path class=\"computes\" d=\"" + computes + "\"/><path class=\"reads\" d=\"" +
           reads + "\"/><path class=\"waits\" d=\"" + waits + "\"/>\n";
  }

  std::string axis(double height) const {
    std::string text;
    for (int k = 0; k <= 4; ++k) {
      const double seconds = (end_ - begin_) * k / 4;
      text += format_printf("<text class=\"label %s\" x=\"%.1f\" y=\"%g\">%s s</text>\n",
                            k == 4 ? "end" : "middle", x(begin_ + seconds), height - 6,
                            number_text(std::round(seconds * 10) / 10).c_str());
    }
    double left = kLeft;
    const std::pair<const char*, const char*> legend[] = {{"computes", "computes"},
                                                          {"reads", "waits for data"},
                                                          {"waits", "waits for other ranks"},
                                                          {"evaluates", "evaluation"},
                                                          {"starts", "start"}};
    for (const auto& [kind, name] : legend) {
      text += format_printf(
          "<rect class=\"%s\" x=\"%g\" y=\"4\" width=\"10\" height=\"10\"/>"
          "<text class=\"label\" x=\"%g\" y=\"13\">%s</text>\n",
          kind, left, left + 15, name);
      left += 150;
    }
    return text;
  }

  const RunHistory& run_;
  const std::vector<size_t> ranks_;
  const double begin_, end_;
};

}  // namespace

std::string rank_timeline_svg(const RunReport& report) { return Timeline(report).svg(); }

const char* rank_timeline_style() {
  return R"(.chart path.computes,.chart .computes{fill:#7fb2f0;stroke:none}.chart path.reads,.chart .reads{fill:#d9730d;stroke:none}
.chart path.waits,.chart .waits{fill:#b8bfc6;stroke:none}.chart path.evaluates,.chart .evaluates{fill:#57ab5a;stroke:none}
.chart path.starts,.chart .starts{fill:#8250df;stroke:none}
)";
}

}  // namespace fleet
