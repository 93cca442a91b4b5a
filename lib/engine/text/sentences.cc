#include "text/sentences.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace fleet::text {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\f\v";

bool is_space(char c) { return kSpaces.find(c) != std::string_view::npos; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view without_spaces(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// The bytes of one of these strings at `at`; 0: none of them.
template <size_t count>
size_t size_of_any(const std::array<std::string_view, count>& all, std::string_view text,
                   size_t at) {
  for (const std::string_view one : all) {
    if (text.substr(at, one.size()) == one) return one.size();
  }
  return 0;
}

constexpr std::array<std::string_view, 3> kStops = {".", "!", "?"};
// Full-width ones, which need no white space behind them.
constexpr std::array<std::string_view, 4> kWideStops = {"。", "！", "？", "｡"};
constexpr std::array<std::string_view, 9> kClosing = {"\"", "'", ")",  "]", "”",
                                                      "’",  "»", "」", "』"};
constexpr std::array<std::string_view, 27> kAbbreviations = {
    "mr", "mrs", "ms",  "dr",  "prof", "st", "jr",  "sr", "gen", "col", "capt", "lt", "rev", "hon",
    "no", "vs",  "fig", "vol", "pp",   "cf", "e.g", "eg", "i.e", "ie",  "inc",  "ca", "al"};

// Whether the period at `at` belongs to the word before it.
bool is_abbreviation(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0 && (is_letter(text[begin - 1]) || text[begin - 1] == '.')) --begin;
  const std::string_view word = text.substr(begin, at - begin);
  const bool alone = begin == 0 || is_space(text[begin - 1]) || text[begin - 1] == '(';
  if (word.empty() || !alone) return false;
  // Initials: "J.", "U.S.", but "I." ends a sentence more often.
  const char last = word.back();
  const bool initial = word.size() == 1 || word[word.size() - 2] == '.';
  if (initial && last >= 'A' && last <= 'Z' && word != "I") return true;
  const std::string lower = lower_case(std::string(word));
  return std::ranges::find(kAbbreviations, std::string_view(lower)) != kAbbreviations.end();
}

// The end of an empty line that begins at `at`, behind its line end; 0: the line is not empty.
size_t end_of_empty_line(std::string_view text, size_t at) {
  while (at < text.size() && text[at] != '\n' && is_space(text[at])) ++at;
  if (at < text.size() && text[at] != '\n') return 0;
  return std::min(at + 1, text.size());
}

// The end of the sentence that ends with the stop at `at`; 0: none ends there.
size_t end_of_sentence(std::string_view text, size_t at) {
  const size_t wide = size_of_any(kWideStops, text, at);
  const size_t stop = wide > 0 ? wide : size_of_any(kStops, text, at);
  if (stop == 0) return 0;
  size_t end = at + stop;
  while (end < text.size()) {
    size_t more = size_of_any(kClosing, text, end);
    if (more == 0) more = size_of_any(kStops, text, end);
    if (more == 0) break;
    end += more;
  }
  if (wide > 0) return end;
  if (end < text.size() && !is_space(text[end])) return 0;
  const size_t next = text.find_first_not_of(kSpaces, end);
  if (next != std::string_view::npos && text[next] >= 'a' && text[next] <= 'z') return 0;
  return text[at] == '.' && is_abbreviation(text, at) ? 0 : end;
}

}  // namespace

SentenceForm sentence_form(const std::string& name) {
  if (name == "split") return SentenceForm::kSplit;
  if (name == "lines") return SentenceForm::kLines;
  throw Error(ErrorCode::kUsage, "unknown form of sentences '" + name + "'", "sentences",
              "use split or lines");
}

bool is_empty_line(std::string_view line) { return without_spaces(line).empty(); }

void split_sentences(std::string_view text, const SentenceVisitor& sentence) {
  size_t begin = 0;
  const auto cut = [&](size_t end) {
    const std::string_view found = without_spaces(text.substr(begin, end - begin));
    if (!found.empty()) sentence(found);
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\n') {
      const size_t end = end_of_empty_line(text, at + 1);
      if (end > at + 1) cut(end);
      ++at;
      continue;
    }
    const size_t end = end_of_sentence(text, at);
    if (end > 0) cut(end);
    at = std::max(end, at + 1);
  }
  cut(text.size());
}

void split_lines(std::string_view text, const SentenceVisitor& sentence) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = without_spaces(text.substr(at, end - at));
    if (!line.empty()) sentence(line);
    at = end + 1;
  }
}

SentenceMarks sentence_marks(size_t vocabulary) {
  const auto first = static_cast<uint32_t>(vocabulary);
  return {.sentence = first, .document = first + 1};
}

SentenceEncoder::SentenceEncoder(const Tokenizer& tokenizer, SentenceForm form)
    : tokenizer_(tokenizer), form_(form), marks_(sentence_marks(tokenizer.vocabulary_size())) {
  FLEET_CHECK(form != SentenceForm::kNone, "an encoder of undivided texts");
}

void SentenceEncoder::add(std::string_view text, std::vector<uint32_t>& ids) {
  const auto split = form_ == SentenceForm::kLines ? split_lines : split_sentences;
  split(text, [&](std::string_view sentence) { add_sentence(sentence, ids); });
}

void SentenceEncoder::add_sentence(std::string_view sentence, std::vector<uint32_t>& ids) {
  sentence_.assign(begun_ ? " " : "");
  for (size_t i = 0; i < sentence.size(); ++i) {
    const bool breaks = sentence[i] == '\n' || sentence[i] == '\r';
    // One space for a line break and what indents the next line.
    if (!breaks) {
      sentence_ += sentence[i];
      continue;
    }
    while (i + 1 < sentence.size() && is_space(sentence[i + 1])) ++i;
    while (!sentence_.empty() && sentence_.back() == ' ') sentence_.pop_back();
    sentence_ += ' ';
  }
  const size_t before = ids.size();
  tokenizer_.encode_as_text(sentence_, ids);
  if (ids.size() == before) return;
  ids.push_back(marks_.sentence);
  begun_ = true;
}

bool SentenceEncoder::end_document(std::vector<uint32_t>& ids) {
  if (begun_) ids.push_back(marks_.document);
  return std::exchange(begun_, false);
}

std::optional<size_t> ParagraphCutter::cut(size_t slot) const {
  if (slot == 0) return first_;
  const size_t begin = slot * slot_bytes_, end = std::min(begin + slot_bytes_, text_.size());
  for (size_t at = text_.find('\n', begin); at < end; at = text_.find('\n', at + 1)) {
    const size_t found = end_of_empty_line(text_, at + 1);
    if (found > at + 1 && found < text_.size() && at + 1 > first_) return found;
  }
  return std::nullopt;
}

size_t ParagraphCutter::next_cut(size_t slot) const {
  for (; slot < slots(); ++slot) {
    if (const auto found = cut(slot)) return *found;
  }
  return text_.size();
}

}  // namespace fleet::text
