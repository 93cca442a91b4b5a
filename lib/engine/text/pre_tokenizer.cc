#include "text/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/code_point_set.h"
#include "text/replacement.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

// GPT-2's, in byte_level.rs of Hugging Face's tokenizers.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

SplitBehavior behavior_option(const PartOptions& options, const std::string& initial) {
  const std::string name = options.text("behavior", initial);
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  options.wrong("behavior", "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

SplitPattern pattern_of_words() {
  CodePointSet others = word_characters();
  others.add(white_space());
  others.normalize();
  const SetPattern sets[] = {{word_characters(), true}, {others.complement(), true}};
  return SplitPattern::of_sets(sets);
}

SplitPattern pattern_of_bert() {
  const CodePointSet& punctuation = other_set(OtherSet::kBertPunctuation);
  CodePointSet others = punctuation;
  others.add(white_space());
  others.normalize();
  const SetPattern sets[] = {{punctuation, false}, {others.complement(), true}};
  return SplitPattern::of_sets(sets);
}

SplitPattern pattern_of_set(const CodePointSet& set, bool run) {
  const SetPattern sets[] = {{set, run}};
  return SplitPattern::of_sets(sets);
}

// The operations of a text that the steps need, for both kinds.
std::string_view bytes_of(std::string_view text) { return text; }
std::string_view bytes_of(AlignedView text) { return text.text; }
std::string_view part_of(std::string_view text, size_t begin, size_t end) {
  return text.substr(begin, end - begin);
}
AlignedView part_of(AlignedView text, size_t begin, size_t end) {
  return text.part(begin, end - begin);
}
std::string_view view_of(const std::string& text) { return text; }
AlignedView view_of(const AlignedText& text) { return text.view(); }

std::string with_prefix(std::string_view text, std::string_view prefix) {
  std::string longer(prefix);
  return longer += text;
}
AlignedText with_prefix(AlignedView text, std::string_view prefix) {
  AlignedText longer(text);
  longer.prepend(prefix);
  return longer;
}

std::string with_marked_spaces(std::string_view text, const std::string& mark) {
  std::string replaced;
  replaced.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    if (c == ' ') {
      replaced += mark;
    } else {
      replaced.push_back(c);
    }
  }
  return replaced;
}
AlignedText with_marked_spaces(AlignedView text, const std::string& mark) {
  AlignedText replaced(text);
  replaced.spell([&](char32_t c, std::string& out) {
    if (c == ' ') {
      out += mark;
    } else {
      append_utf8(c, out);
    }
  });
  return replaced;
}

}  // namespace

PreTokenizer::PreTokenizer(const Json& json, const std::string& where) {
  if (!json.is_null()) add(json, where, 0);
}

void PreTokenizer::add(const Json& json, const std::string& where, int depth) {
  const PartOptions options(json, "pre-tokenizer", where);
  const std::string& type = options.type();
  if (byte_level_) {
    throw Error(ErrorCode::kUnsupported, "the pre-tokenizer " + type + " after ByteLevel", where);
  }
  if (type == "Sequence") {
    if (depth > 20) options.refuse("more than 20 nested sequences");
    for (const Json& part : options.list("pretokenizers")) add(part, where, depth + 1);
  } else if (type == "ByteLevel") {
    add_byte_level(options);
  } else if (type == "Split") {
    add_split(pattern_option(options), behavior_option(options, ""), options.flag("invert", false));
  } else if (type == "BertPreTokenizer") {
    add_split(pattern_of_bert(), SplitBehavior::kRemoved, true);
  } else if (type == "Whitespace") {
    add_split(pattern_of_words(), SplitBehavior::kRemoved, true);
  } else if (type == "WhitespaceSplit") {
    add_split(pattern_of_set(white_space(), true), SplitBehavior::kRemoved, false);
  } else if (type == "Digits") {
    add_split(
        pattern_of_set(other_set(OtherSet::kNumbers), !options.flag("individual_digits", false)),
        SplitBehavior::kIsolated, false);
  } else if (type == "Punctuation") {
    add_split(pattern_of_set(other_set(OtherSet::kBertPunctuation), false),
              behavior_option(options, "Isolated"), false);
  } else if (type == "CharDelimiterSplit") {
    add_split(SplitPattern::literal(options.text("delimiter"), where), SplitBehavior::kRemoved,
              false);
  } else if (type == "Metaspace") {
    add_metaspace(options);
  } else {
    options.refuse_type();
  }
}

void PreTokenizer::add_split(SplitPattern pattern, SplitBehavior behavior, bool invert) {
  PreTokenizerStep& step = steps_.emplace_back();
  step.kind = PreTokenizerStep::Kind::kSplit;
  step.pattern = std::move(pattern);
  step.behavior = behavior;
  step.invert = invert;
}

void PreTokenizer::add_byte_level(const PartOptions& options) {
  if (options.flag("add_prefix_space", true)) {
    steps_.emplace_back().kind = PreTokenizerStep::Kind::kPrefixSpace;
  }
  if (options.flag("use_regex", true)) {
    add_split(SplitPattern(kGpt2Pattern, options.where()), SplitBehavior::kIsolated, false);
  }
  byte_level_ = true;
}

void PreTokenizer::add_metaspace(const PartOptions& options) {
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::Kind::kMetaspace;
  step.replacement = options.text("replacement", "\xE2\x96\x81");
  const SplitPattern pattern = SplitPattern::literal(step.replacement, options.where());
  // Older files have add_prefix_space instead of prepend_scheme.
  const std::string scheme =
      options.text("prepend_scheme", options.flag("add_prefix_space", true) ? "always" : "never");
  if (scheme == "always") {
    step.prepend = PreTokenizerStep::Prepend::kAlways;
  } else if (scheme == "first") {
    step.prepend = PreTokenizerStep::Prepend::kFirst;
  } else if (scheme != "never") {
    options.wrong("prepend_scheme", "always, first or never");
  }
  if (options.flag("split", true)) step.pattern = pattern;
  step.behavior = SplitBehavior::kMergedWithNext;
  steps_.push_back(std::move(step));
}

bool PreTokenizer::uses_first() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const PreTokenizerStep& step) {
    return step.prepend == PreTokenizerStep::Prepend::kFirst;
  });
}

void PreTokenizer::split(std::string_view text, bool first, const Piece& piece) const {
  run(0, text, first, piece);
}

void PreTokenizer::split(AlignedView text, bool first, const AlignedPiece& piece) const {
  run(0, text, first, piece);
}

template <typename Text>
void PreTokenizer::run(size_t number, Text text, bool first, const PieceOf<Text>& piece) const {
  if (bytes_of(text).empty()) return;
  if (number == steps_.size()) return piece(text);
  const PreTokenizerStep& step = steps_[number];
  switch (step.kind) {
    case PreTokenizerStep::Kind::kSplit:
      if (step.behavior == SplitBehavior::kIsolated || step.behavior == SplitBehavior::kRemoved) {
        run_split(number, text, first, piece);
      } else {
        run_merged(number, text, first, piece);
      }
      break;
    case PreTokenizerStep::Kind::kPrefixSpace:
      if (bytes_of(text)[0] == ' ') {
        run(number + 1, text, first, piece);
      } else {
        const auto longer = with_prefix(text, " ");
        run(number + 1, view_of(longer), first, piece);
      }
      break;
    case PreTokenizerStep::Kind::kMetaspace:
      run_metaspace(number, text, first, piece);
      break;
  }
}

template <typename Text>
void PreTokenizer::run_split(size_t number, Text whole, bool first,
                             const PieceOf<Text>& piece) const {
  const std::string_view text = bytes_of(whole);
  const PreTokenizerStep& step = steps_[number];
  const bool isolated = step.behavior == SplitBehavior::kIsolated;
  const bool keep_matches = isolated || step.invert, keep_others = isolated || !step.invert;
  const bool last_step = number + 1 == steps_.size();
  const auto emit = [&](size_t begin, size_t end) {
    const Text part = part_of(whole, begin, end);
    last_step ? piece(part) : run(number + 1, part, first && begin == 0, piece);
  };
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    size_t end = step.pattern->match(text, at);
    if (end == SplitPattern::kNone) end = step.pattern->find(text, at, &begin);
    if (end == SplitPattern::kNone) {
      if (keep_others) emit(at, text.size());
      return;
    }
    if (keep_others && begin > at) emit(at, begin);
    if (keep_matches) emit(begin, end);
    at = end;
  }
}

namespace {

struct SplitPart {
  size_t begin, end;
  bool is_match;
};

std::vector<SplitPart> split_parts(const SplitPattern& pattern, bool invert,
                                   std::string_view text) {
  std::vector<SplitPart> parts;
  for (size_t at = 0; at < text.size();) {
    size_t begin;
    const size_t end = pattern.find(text, at, &begin);
    if (end == SplitPattern::kNone) {
      parts.push_back({at, text.size(), invert});
      break;
    }
    if (begin > at) parts.push_back({at, begin, invert});
    parts.push_back({begin, end, !invert});
    at = end;
  }
  return parts;
}

// Whether a part joins the one before it (of kMergedWithNext: whether it joins the one after it).
bool joins_neighbour(SplitBehavior behavior, const SplitPart& part, bool neighbour_is_match) {
  if (behavior == SplitBehavior::kContiguous) return part.is_match == neighbour_is_match;
  return part.is_match && !neighbour_is_match;
}

}  // namespace

template <typename Text>
void PreTokenizer::run_merged(size_t number, Text text, bool first,
                              const PieceOf<Text>& piece) const {
  const PreTokenizerStep& step = steps_[number];
  const std::vector<SplitPart> parts = split_parts(*step.pattern, step.invert, bytes_of(text));
  size_t begin = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const bool joined =
        !last && (step.behavior == SplitBehavior::kMergedWithNext
                      ? joins_neighbour(step.behavior, parts[i], parts[i + 1].is_match)
                      : joins_neighbour(step.behavior, parts[i + 1], parts[i].is_match));
    if (joined) continue;
    run(number + 1, part_of(text, begin, parts[i].end), first && begin == 0, piece);
    begin = parts[i].end;
  }
}

template <typename Text>
void PreTokenizer::run_metaspace(size_t number, Text text, bool first,
                                 const PieceOf<Text>& piece) const {
  const PreTokenizerStep& step = steps_[number];
  auto replaced = with_marked_spaces(text, step.replacement);
  const bool prepend = step.prepend == PreTokenizerStep::Prepend::kAlways ||
                       (step.prepend == PreTokenizerStep::Prepend::kFirst && first);
  if (prepend && !bytes_of(view_of(replaced)).starts_with(step.replacement)) {
    replaced = with_prefix(view_of(replaced), step.replacement);
  }
  if (step.pattern) {
    run_merged(number, view_of(replaced), first, piece);
  } else {
    run(number + 1, view_of(replaced), first, piece);
  }
}

}  // namespace fleet::text
