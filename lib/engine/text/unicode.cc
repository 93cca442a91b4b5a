#include "text/unicode.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/utf8.h"

namespace fleet::text {
namespace {

#include "text/unicode_tables.inc"

// Of Hangul syllables (The Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;

struct NormalTables {
  std::unordered_map<char32_t, std::u32string> canonical, compatible;  // one step
  std::unordered_map<uint64_t, char32_t> composed;                     // first << 32 | second
  std::unordered_map<char32_t, uint8_t> combining_class;               // where it is not 0

  NormalTables() {
    for (size_t i = 0; i < std::size(kDecompositions);) {
      const char32_t head = kDecompositions[i++];
      const char32_t code_point = head & 0x1FFFFF;
      const size_t length = head >> 24;
      const bool is_compatible = head & 0x200000, is_excluded = head & 0x400000;
      std::u32string parts(kDecompositions + i, kDecompositions + i + length);
      i += length;
      if (!is_compatible && !is_excluded) {
        composed[uint64_t{parts[0]} << 32 | parts[1]] = code_point;
      }
      (is_compatible ? compatible : canonical)[code_point] = std::move(parts);
    }
    for (const CombiningRun& run : kCombiningRuns) {
      for (char32_t c = run.first; c <= run.last; ++c) combining_class[c] = run.combining_class;
    }
  }

  uint8_t class_of(char32_t c) const {
    if (c < 0x300) return 0;
    const auto found = combining_class.find(c);
    return found == combining_class.end() ? 0 : found->second;
  }

  void decompose(char32_t c, bool compatibly, std::u32string& out) const {
    if (c >= kSyllables && c < kSyllables + kLeadCount * kVowelCount * kTailCount) {
      const char32_t index = c - kSyllables;
      out.push_back(kLeads + index / (kVowelCount * kTailCount));
      out.push_back(kVowels + index % (kVowelCount * kTailCount) / kTailCount);
      if (index % kTailCount) out.push_back(kTails + index % kTailCount);
      return;
    }
    if (c >= 0xA0) {
      auto found = canonical.find(c);
      bool has = found != canonical.end();
      if (!has && compatibly) {
        found = compatible.find(c);
        has = found != compatible.end();
      }
      if (has) {
        for (const char32_t part : found->second) decompose(part, compatibly, out);
        return;
      }
    }
    out.push_back(c);
  }

  char32_t compose(char32_t first, char32_t second) const {  // 0: they have no composition
    if (first >= kLeads && first < kLeads + kLeadCount && second >= kVowels &&
        second < kVowels + kVowelCount) {
      return kSyllables + ((first - kLeads) * kVowelCount + second - kVowels) * kTailCount;
    }
    if (first >= kSyllables && first < kSyllables + kLeadCount * kVowelCount * kTailCount &&
        (first - kSyllables) % kTailCount == 0 && second > kTails && second < kTails + kTailCount) {
      return first + second - kTails;
    }
    const auto found = composed.find(uint64_t{first} << 32 | second);
    return found == composed.end() ? 0 : found->second;
  }
};

const NormalTables& normal_tables() {
  static const NormalTables tables;
  return tables;
}

// The two steps work on code points, and on code points with their change.
char32_t& code_point_of(char32_t& c) { return c; }
char32_t& code_point_of(CharacterChange& c) { return c.code_point; }
void add_change(char32_t&, const char32_t&) {}
void add_change(CharacterChange& composed, const CharacterChange& second) {
  composed.change += second.change - 1;
}

template <typename Text>
void sort_marks(Text& text, const NormalTables& tables) {
  const auto class_at = [&](size_t i) { return tables.class_of(code_point_of(text[i])); };
  for (size_t i = 0; i < text.size();) {
    if (class_at(i) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && class_at(end) != 0) ++end;
    std::stable_sort(text.begin() + static_cast<ptrdiff_t>(i),
                     text.begin() + static_cast<ptrdiff_t>(end), [&](auto a, auto b) {
                       return tables.class_of(code_point_of(a)) < tables.class_of(code_point_of(b));
                     });
    i = end;
  }
}

template <typename Text>
void compose_marks(Text& text, const NormalTables& tables) {
  size_t kept = 0, starter = 0;
  bool has_starter = false;
  int last_class = -1;  // the last one kept since the starter; -1: none
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = text[i];
    const int c_class = tables.class_of(code_point_of(c));
    if (has_starter && last_class < c_class) {
      const char32_t both = tables.compose(code_point_of(text[starter]), code_point_of(c));
      if (both != 0) {
        code_point_of(text[starter]) = both;
        add_change(text[starter], c);
        continue;
      }
    }
    if (c_class == 0) {
      starter = kept;
      has_starter = true;
      last_class = -1;
    } else {
      last_class = c_class;
    }
    text[kept++] = c;
  }
  text.resize(kept);
}

char32_t simple_lower_case(char32_t c) {
  const auto after =
      std::upper_bound(std::begin(kLowerRuns), std::end(kLowerRuns), c,
                       [](char32_t value, const LowerRun& run) { return value < run.first; });
  if (after == std::begin(kLowerRuns)) return c;
  const LowerRun& run = *std::prev(after);
  if (c > run.last || (c - run.first) % run.stride != 0) return c;
  return static_cast<char32_t>(static_cast<int32_t>(c) + run.delta);
}

}  // namespace

void for_each_category_run(
    const std::function<void(char32_t first, char32_t last, std::string_view category)>& run) {
  const size_t count = std::size(kCategoryRuns);
  for (size_t i = 0; i < count; ++i) {
    const char32_t first = kCategoryRuns[i] >> 5;
    const char32_t last = i + 1 < count ? (kCategoryRuns[i + 1] >> 5) - 1 : 0x10FFFF;
    run(first, last, std::string_view(kCategoryNames).substr((kCategoryRuns[i] & 31) * 2, 2));
  }
}

const CodePointSet& other_set(OtherSet which) {
  static const auto sets = [] {
    std::array<CodePointSet, 5> all;
    const auto fill = [&](OtherSet set, std::span<const CodePointRange> ranges) {
      for (const auto& [first, last] : ranges) all[static_cast<size_t>(set)].add(first, last);
    };
    fill(OtherSet::kBertPunctuation, kBertPunctuation);
    fill(OtherSet::kBertMarks, kBertMarks);
    fill(OtherSet::kBertControls, kBertControls);
    fill(OtherSet::kAccents, kAccents);
    fill(OtherSet::kNumbers, kNumbers);
    return all;
  }();
  return sets[static_cast<size_t>(which)];
}

std::string normal_form(NormalForm form, std::string_view text) {
  const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatibly = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  // ASCII is in every normal form. Latin-1 characters are in NFC.
  if (std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; })) {
    return std::string(text);
  }
  const NormalTables& tables = normal_tables();
  std::string result;
  result.reserve(text.size());
  std::u32string part;
  // A part ends before an ASCII character: nothing before one combines with it.
  const auto flush = [&] {
    sort_marks(part, tables);
    if (composes) compose_marks(part, tables);
    for (const char32_t c : part) append_utf8(c, result);
    part.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const char32_t c = code_point_at(text, at, &at);
    if (c < 0x80) {
      flush();
      // An ASCII character before another one is final.
      if (at == text.size() || !(text[at] & 0x80)) {
        result.push_back(static_cast<char>(c));
        continue;
      }
    }
    tables.decompose(c, compatibly, part);
  }
  flush();
  return result;
}

std::vector<CharacterChange> normal_form_changes(NormalForm form, std::string_view text) {
  const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatibly = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const NormalTables& tables = normal_tables();
  std::vector<CharacterChange> changes;
  changes.reserve(text.size());
  std::u32string parts;
  for (size_t at = 0; at < text.size();) {
    parts.clear();
    tables.decompose(code_point_at(text, at, &at), compatibly, parts);
    for (size_t i = 0; i < parts.size(); ++i) changes.push_back({parts[i], i > 0 ? 1 : 0});
  }
  sort_marks(changes, tables);
  if (composes) compose_marks(changes, tables);
  return changes;
}

void append_lower_case(char32_t code_point, std::string& text) {
  append_utf8(simple_lower_case(code_point), text);
  if (code_point == 0x130) append_utf8(0x307, text);
}

std::string unicode_lower_case(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const unsigned char lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      result.push_back(static_cast<char>(lead >= 'A' && lead <= 'Z' ? lead + 32 : lead));
      ++at;
      continue;
    }
    append_lower_case(code_point_at(text, at, &at), result);
  }
  return result;
}

}  // namespace fleet::text
