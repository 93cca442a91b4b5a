#include "models/metrics_answers.h"

#include <algorithm>
#include <map>

#include "text/code_point_set.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace fleet {
namespace {

constexpr std::string_view kPunctuation = R"(!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~)";  // Python's

// str.isspace(), by which split() cuts.
bool is_space(char32_t c) { return (c >= 0x1C && c <= 0x1F) || text::white_space().contains(c); }

// What \b of Python's re takes for part of a word. '_' is punctuation, and gone.
bool is_word(char32_t c) {
  return text::general_category("L")->contains(c) || text::general_category("N")->contains(c);
}

bool is_article(std::u32string_view word) {
  return word == U"a" || word == U"an" || word == U"the";
}

// With a space for each article: a run of word characters between others.
std::u32string without_articles(const std::u32string& text) {
  std::u32string kept;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const auto word = std::u32string_view(text).substr(at, end - at);
    if (is_article(word)) {
      kept += U' ';
    } else {
      kept += word;
    }
    if (end < text.size()) kept += text[end++];
    at = end;
  }
  return kept;
}

std::vector<std::string> words_of(std::string_view answer) {
  std::u32string text = text::code_points_of(text::unicode_lower_case(text::valid_utf8(answer)));
  std::erase_if(text, [](char32_t c) {
    return c < 0x80 && kPunctuation.find(static_cast<char>(c)) != std::string_view::npos;
  });
  std::vector<std::string> words;
  bool inside = false;
  for (const char32_t c : without_articles(text)) {
    const bool space = is_space(c);
    if (!space && !inside) words.emplace_back();
    if (!space) text::append_utf8(c, words.back());
    inside = !space;
  }
  return words;
}

double f1_of_words(const std::vector<std::string>& right, const std::vector<std::string>& answer) {
  if (right.empty() || answer.empty()) return right.empty() && answer.empty() ? 1 : 0;
  std::map<std::string, int64_t> left;
  for (const std::string& word : right) ++left[word];
  double common = 0;
  for (const std::string& word : answer) {
    const auto found = left.find(word);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++common;
  }
  if (common == 0) return 0;
  const double precision = common / static_cast<double>(answer.size());
  const double recall = common / static_cast<double>(right.size());
  return (2 * precision * recall) / (precision + recall);
}

double ratio(double part, double of) { return of > 0 ? part / of : 0; }

}  // namespace

std::string normalized_answer(std::string_view answer) {
  std::string text;
  for (const std::string& word : words_of(answer)) text += (text.empty() ? "" : " ") + word;
  return text;
}

bool is_exact_answer(std::string_view right, std::string_view answer) {
  return words_of(right) == words_of(answer);
}

double answer_f1(std::string_view right, std::string_view answer) {
  return f1_of_words(words_of(right), words_of(answer));
}

void add_answer(const std::vector<std::string>& right, std::string_view answer, AnswerSums* sums) {
  const std::vector<std::string> words = words_of(answer);
  double exact = 0, f1 = 0;
  bool answerable = false;
  for (const std::string& one : right) {
    const std::vector<std::string> expected = words_of(one);
    if (expected.empty()) continue;
    answerable = true;
    exact = std::max(exact, expected == words ? 1.0 : 0.0);
    f1 = std::max(f1, f1_of_words(expected, words));
  }
  if (!answerable) exact = f1 = words.empty() ? 1 : 0;
  sums->questions += 1;
  sums->exact += exact;
  sums->f1 += f1;
}

FLEET_METRIC(exact_match) {
  def.help = "part of the answers that equal a right one, without case, punctuation and articles";
  def.of_answers = [](const AnswerSums& sums) { return ratio(sums.exact, sums.questions); };
}

}  // namespace fleet
