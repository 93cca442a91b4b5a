#include "models/predicted_answers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/rounded.h"
#include "text/utf8.h"

namespace fleet {
namespace {

// A row: its part, the score of the null answer, how many spans it has, then score, first and last
// byte of each.
constexpr size_t kHead = 3, kFields = 3;

struct Candidate {
  double score = 0;
  size_t begin = 0, end = 0;  // bytes of the context; equal: the null answer
  double probability = 0;
  bool is_none() const { return begin == end; }
};

int64_t characters(const std::string& text, size_t end) {
  return std::count_if(text.begin(), text.begin() + static_cast<ptrdiff_t>(end),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

Json shown(const Candidate& candidate, const std::string& context) {
  Json members = {{"answer", context.substr(candidate.begin, candidate.end - candidate.begin)}};
  const bool none = candidate.is_none();
  members["start"] = none ? Json() : Json(characters(context, candidate.begin));
  members["end"] = none ? Json() : Json(characters(context, candidate.end));
  members["score"] = rounded_to_digits(candidate.score, 9);
  members["probability"] = rounded_to_digits(candidate.probability, 7);
  return members;
}

class AnswerDecoder : public PredictionDecoder {
 public:
  AnswerDecoder(const AnswerLimits& limits, int64_t length)
      : limits_(limits),
        spans_(static_cast<size_t>(
            std::min(limits.candidates, length * std::min(limits.longest, length)))) {}

  std::string output() const override { return "span_logits"; }
  std::string name_key() const override { return "id"; }
  bool lists() const override { return true; }
  size_t size() const override { return kHead + kFields * spans_; }
  size_t used(std::span<const double> numbers) const override {
    return kHead + kFields * static_cast<size_t>(numbers[2]);
  }

  void read(const Rows& rows, int64_t row, std::span<double> to) const override {
    const auto begins = rows.column_as<int64_t>("token_begin"),
               ends = rows.column_as<int64_t>("token_end");
    const size_t length = begins.size() / rows.size, at = row * length;
    const AnswerWindow window(rows.output("span_logits").subspan(2 * at, 2 * length),
                              begins.subspan(at, length));
    const std::vector<AnswerSpan> best =
        best_answers(window.starts, window.ends, window.in_context, limits_, spans_);
    to[0] = static_cast<double>(rows.column_as<int64_t>("part")[row]);
    to[1] = window.none;
    to[2] = static_cast<double>(best.size());
    for (size_t i = 0; i < best.size(); ++i) {
      double* span = to.data() + kHead + kFields * i;
      span[0] = best[i].score;
      span[1] = static_cast<double>(begins[at + best[i].first]);
      span[2] = static_cast<double>(ends[at + best[i].last]);
    }
  }

  Json line(const Sample& sample) const override {
    const std::string context = sample.texts("context").at(0);
    double none = INFINITY;
    std::vector<Candidate> all = candidates_of(sample.rows, &none);
    add_probabilities(&all);
    Json members = shown(chosen(all, none), context);
    std::vector<Json> top;
    for (size_t i = 0; i < std::min(all.size(), static_cast<size_t>(sample.top)); ++i) {
      top.push_back(shown(all[i], context));
    }
    members["top"] = Json::array(std::move(top));
    return members;
  }

 private:
  // The best of all windows, the best first; of equal ones the first window's. *none: the lowest
  // score of the null answer.
  std::vector<Candidate> candidates_of(std::vector<std::vector<double>> rows, double* none) const {
    std::ranges::sort(rows, {}, [](const std::vector<double>& row) { return row[0]; });
    std::vector<Candidate> all;
    for (const std::vector<double>& row : rows) {
      *none = std::min(*none, row[1]);
      for (size_t at = kHead; at < row.size(); at += kFields) {
        all.push_back({.score = row[at],
                       .begin = static_cast<size_t>(row[at + 1]),
                       .end = static_cast<size_t>(row[at + 2])});
      }
    }
    const auto better = [](const Candidate& a, const Candidate& b) { return a.score > b.score; };
    std::ranges::stable_sort(all, better);
    const auto most = static_cast<size_t>(limits_.candidates);
    if (all.size() > most) all.resize(most);
    if (limits_.may_have_none) {  // kept whatever its rank, as in the example
      const Candidate null{.score = *none};
      if (all.size() == most && better(null, all.back())) all.pop_back();
      all.insert(std::ranges::upper_bound(all, null, better), null);
    }
    return all;
  }

  static void add_probabilities(std::vector<Candidate>* all) {
    double sum = 0;
    for (Candidate& one : *all) {
      one.probability = std::exp(one.score - all->front().score);
      sum += one.probability;
    }
    for (Candidate& one : *all) one.probability /= sum;
  }

  Candidate chosen(const std::vector<Candidate>& all, double none) const {
    const auto best =
        std::ranges::find_if(all, [](const Candidate& one) { return !one.is_none(); });
    const auto null = std::ranges::find_if(all, &Candidate::is_none);
    const bool empty =
        limits_.may_have_none && (best == all.end() || none - best->score > limits_.none_threshold);
    if (!empty && best != all.end()) return *best;
    if (null != all.end()) return *null;
    return {.score = std::numeric_limits<double>::quiet_NaN(),
            .probability = std::numeric_limits<double>::quiet_NaN()};
  }

  const AnswerLimits limits_;
  const size_t spans_;  // at most, per row
};

}  // namespace

std::unique_ptr<PredictionDecoder> answer_decoder(const AnswerLimits& limits, int64_t length) {
  return std::make_unique<AnswerDecoder>(limits, length);
}

}  // namespace fleet
