#include "models/answer_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace fleet {
namespace {

constexpr size_t kFields = 5;  // for each window, as exchanged

float comparable(float logit) { return std::isnan(logit) ? -INFINITY : logit; }

// The tokens of the largest logits, in ascending order of their places.
std::vector<int64_t> best_tokens(std::span<const float> logits, int64_t count) {
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto kept = std::min<size_t>(static_cast<size_t>(count), order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(kept), order.end(),
                    [&](int64_t a, int64_t b) {
                      const float one = comparable(logits[a]), other = comparable(logits[b]);
                      return one != other ? one > other : a < b;
                    });
  order.resize(kept);
  std::ranges::sort(order);
  return order;
}

// One column of [S, 2].
std::vector<float> column_of(std::span<const float> logits, size_t which) {
  std::vector<float> values;
  for (size_t at = which; at < logits.size(); at += 2) values.push_back(logits[at]);
  return values;
}

struct Winner {
  double score = -INFINITY, part = 0;
  double none = INFINITY;  // the lowest null score
  bool found = false;
};

// The best window of each question: of equal scores the first one.
std::map<double, Winner> winners_of(const std::vector<std::vector<double>>& ranks) {
  std::map<double, Winner> winners;
  for (const std::vector<double>& rows : ranks) {
    for (size_t at = 0; at < rows.size(); at += kFields) {
      Winner& winner = winners[rows[at]];
      const double part = rows[at + 1], score = rows[at + 3];
      winner.none = std::min(winner.none, rows[at + 2]);
      const bool better =
          !winner.found || score > winner.score || (score == winner.score && part < winner.part);
      if (rows[at + 4] == 0 || !better) continue;
      winner.score = score;
      winner.part = part;
      winner.found = true;
    }
  }
  return winners;
}

}  // namespace

std::vector<AnswerSpan> best_answers(std::span<const float> starts, std::span<const float> ends,
                                     std::span<const uint8_t> in_context,
                                     const AnswerLimits& limits, size_t count) {
  std::vector<AnswerSpan> spans;
  const std::vector<int64_t> lasts = best_tokens(ends, limits.candidates);
  for (const int64_t first : best_tokens(starts, limits.candidates)) {
    if (in_context[first] == 0) continue;
    for (const int64_t last : lasts) {
      if (in_context[last] == 0 || last < first || last - first + 1 > limits.longest) continue;
      spans.push_back(
          {static_cast<double>(comparable(starts[first])) + comparable(ends[last]), first, last});
    }
  }
  const auto kept = static_cast<ptrdiff_t>(std::min(count, spans.size()));
  std::partial_sort(spans.begin(), spans.begin() + kept, spans.end(),
                    [](const AnswerSpan& a, const AnswerSpan& b) {
                      if (a.score != b.score) return a.score > b.score;
                      return std::pair(a.first, a.last) < std::pair(b.first, b.last);
                    });
  spans.resize(static_cast<size_t>(kept));
  return spans;
}

AnswerSpan best_answer(std::span<const float> starts, std::span<const float> ends,
                       std::span<const uint8_t> in_context, const AnswerLimits& limits) {
  const std::vector<AnswerSpan> best = best_answers(starts, ends, in_context, limits, 1);
  return best.empty() ? AnswerSpan{.score = -INFINITY, .first = 0, .last = -1} : best[0];
}

AnswerWindow::AnswerWindow(std::span<const float> logits, std::span<const int64_t> begins)
    : starts(column_of(logits, 0)), ends(column_of(logits, 1)), in_context(begins.size()) {
  std::ranges::transform(begins, in_context.begin(),
                         [](int64_t begin) { return begin >= 0 ? 1 : 0; });
  none = static_cast<double>(comparable(logits[0])) + comparable(logits[1]);
}

void AnswerMetrics::add(const Rows& rows) {
  const std::span<const float> logits = rows.output("span_logits");
  const auto questions = rows.column_as<int64_t>("question"),
             parts = rows.column_as<int64_t>("part"),
             begins = rows.column_as<int64_t>("token_begin"),
             ends = rows.column_as<int64_t>("token_end");
  const auto weights = rows.column_as<float>("weight");
  if (rows.size == 0) return;
  const size_t length = begins.size() / rows.size;
  for (int64_t n = 0; n < rows.size; ++n) {
    if (weights[n] == 0) continue;
    const auto row_begins = begins.subspan(n * length, length),
               row_ends = ends.subspan(n * length, length);
    const AnswerWindow own(logits.subspan(n * length * 2, length * 2), row_begins);
    const AnswerSpan best = best_answer(own.starts, own.ends, own.in_context, limits_);
    rows_.insert(rows_.end(), {static_cast<double>(questions[n]), static_cast<double>(parts[n]),
                               own.none, best.score, best.last >= 0 ? 1.0 : 0.0});
    Window window{.answer = "", .right = rows.texts(n, "answers")};
    if (best.last >= 0) {
      const std::vector<std::string> context = rows.texts(n, "context");
      const auto begin = static_cast<size_t>(row_begins[best.first]);
      window.answer = context.at(0).substr(begin, static_cast<size_t>(row_ends[best.last]) - begin);
    }
    windows_.push_back(std::move(window));
  }
}

void AnswerMetrics::finish(RankExchange& ranks) {
  const std::map<double, Winner> winners = winners_of(ranks.gather(rows_));
  // The rank that has the window of a question's answer scores it: question, exact, f1.
  std::vector<double> scored;
  for (size_t w = 0; w < windows_.size(); ++w) {
    const double* row = rows_.data() + w * kFields;
    const Winner& winner = winners.at(row[0]);
    if (row[1] != (winner.found ? winner.part : 0)) continue;
    const bool none = limits_.may_have_none && winner.none - winner.score > limits_.none_threshold;
    AnswerSums sums;
    add_answer(windows_[w].right, none ? "" : windows_[w].answer, &sums);
    scored.insert(scored.end(), {row[0], sums.exact, sums.f1});
  }
  std::map<double, std::pair<double, double>> all;  // by question: one order of the sums
  for (const std::vector<double>& rank : ranks.gather(scored)) {
    for (size_t at = 0; at < rank.size(); at += 3) all[rank[at]] = {rank[at + 1], rank[at + 2]};
  }
  for (const auto& [question, scores] : all) {
    sums_.questions += 1;
    sums_.exact += scores.first;
    sums_.f1 += scores.second;
  }
}

std::map<std::string, double> AnswerMetrics::metrics() const {
  std::map<std::string, double> values;
  for (const std::string& name : metrics_) {
    values[name] = named_metric_registry().get(name).of_answers(sums_);
  }
  return values;
}

}  // namespace fleet
