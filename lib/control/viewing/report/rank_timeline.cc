#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/number_text.h"
#include "viewing/report/run_report.h"

namespace fleet {
namespace {

// Units of the picture: pixels in height; its width is stretched to the page's.
constexpr double kWidth = 1000, kRow = 16, kGap = 4;
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

// The trainer that failed, if its verdict names it.
std::optional<size_t> failed_rank(const RunReport& report) {
  const auto rank = report.verdict ? report.verdict->object("rank") : std::nullopt;
  if (!rank || rank->text("role") == "server") return std::nullopt;
  const double number = rank->number("rank");
  return number >= 0 && number < 1e9 ? std::optional(static_cast<size_t>(number)) : std::nullopt;
}

// By number; of many ranks those that waited least for the others, who waited for them, and the
// one that failed.
std::vector<size_t> shown_ranks(const RunHistory& run, std::optional<size_t> failed) {
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
  const auto cut = ranks.begin() + static_cast<ptrdiff_t>(kMaxRows);
  const auto hidden = failed ? std::find(cut, ranks.end(), *failed) : ranks.end();
  if (hidden != ranks.end()) std::iter_swap(cut - 1, hidden);
  ranks.resize(kMaxRows);
  std::ranges::sort(ranks);
  return ranks;
}

class Timeline {
 public:
  explicit Timeline(const RunReport& report)
      : run_(report.run),
        failed_(failed_rank(report)),
        ranks_(shown_ranks(report.run, failed_)),
        begin_(run_.begin),
        end_(run_.end) {}

  std::string html() const {
    if (run_.ranks.empty() || !(end_ > begin_)) return {};
    const double height = static_cast<double>(ranks_.size() + 1) * (kRow + kGap);
    return "<div class=\"timeline\">" + legend() + "<div class=\"labels\">" + labels() + "</div>" +
           format_printf(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
               "preserveAspectRatio=\"none\" viewBox=\"0 0 %g %g\" style=\"height:%gpx\">",
               kWidth, height, height) +
           job_row() + rank_rows() + "</svg>" + axis() + "</div>\n";
  }

 private:
  double x(double time) const {
    return std::clamp((time - begin_) / (end_ - begin_), 0.0, 1.0) * kWidth;
  }

  std::string labels() const {
    std::string all = "<div>job</div>";
    for (const size_t rank : ranks_) {
      const bool failed = failed_ && *failed_ == rank;
      all += std::string(failed ? "<div class=\"bad\">" : "<div>") + "rank " +
             std::to_string(rank) + (failed ? " failed</div>" : "</div>");
    }
    return all;
  }

  std::string job_row() const {
    std::string evaluations;
    for (const JsonObject& test : run_.tests) {
      const double end = test.number("time"), seconds = test.number("seconds");
      if (!std::isfinite(end) || !std::isfinite(seconds)) continue;
      const double from = x(end - seconds);
      evaluations += rectangle(from, 0, std::max(x(end) - from, 1.0), kRow);
    }
    std::string starts;
    for (const JsonObject& start : run_.starts) {
      const double time = start.number("time");
      if (std::isfinite(time)) starts += rectangle(std::min(x(time), kWidth - 3), 0, 3, kRow);
    }
    return "<path class=\"evaluates\" d=\"" + evaluations + "\"/><path class=\"starts\" d=\"" +
           starts + "\"/>\n";
  }

  std::string rank_rows() const {
    const auto intervals =
        merged(run_.ranks, std::max<size_t>(kMaxCells / std::max<size_t>(ranks_.size(), 1), 20));
    std::string computes, reads, waits;
    double y = kRow + kGap;
    for (const size_t rank : ranks_) {
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
    return "<path class=\"computes\" d=\"" + computes + "\"/><path class=\"reads\" d=\"" + reads +
           "\"/><path class=\"waits\" d=\"" + waits + "\"/>\n";
  }

  std::string axis() const {
    std::string text = "<div class=\"axis\">";
    for (int k = 0; k <= 4; ++k) {
      const double seconds = (end_ - begin_) * k / 4;
      text += "<span>" + number_text(std::round(seconds * 10) / 10) + " s</span>";
    }
    return text + "</div>";
  }

  static std::string legend() {
    std::string text = "<div class=\"keys\">";
    const std::pair<const char*, const char*> keys[] = {{"computes", "computes"},
                                                        {"reads", "waits for data"},
                                                        {"waits", "waits for other ranks"},
                                                        {"evaluates", "evaluation"},
                                                        {"starts", "start"}};
    for (const auto& [kind, name] : keys) {
      text += std::string("<span><b class=\"") + kind + "\"></b>" + name + "</span>";
    }
    return text + "</div>";
  }

  const RunHistory& run_;
  const std::optional<size_t> failed_;
  const std::vector<size_t> ranks_;
  const double begin_, end_;
};

}  // namespace

std::string rank_timeline(const RunReport& report) { return Timeline(report).html(); }

const char* rank_timeline_style() {
  return R"(.timeline{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:4px 10px;font-size:12px;color:#656d76}
.timeline svg{width:100%;max-width:none}.timeline .labels div{height:20px;line-height:16px;text-align:right}
.timeline .keys{grid-column:1/-1;display:flex;flex-wrap:wrap;gap:2px 18px}
.timeline .keys b{display:inline-block;width:10px;height:10px;margin-right:5px}
.timeline .axis{grid-column:2;display:flex;justify-content:space-between}
.timeline .computes{fill:#7fb2f0;background:#7fb2f0}.timeline .reads{fill:#d9730d;background:#d9730d}
.timeline .waits{fill:#b8bfc6;background:#b8bfc6}.timeline .evaluates{fill:#57ab5a;background:#57ab5a}
.timeline .starts{fill:#8250df;background:#8250df}
@media(max-width:500px){.timeline .axis span:nth-child(even){display:none}}
)";
}

}  // namespace fleet
