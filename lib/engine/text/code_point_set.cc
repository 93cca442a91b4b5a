#include "text/code_point_set.h"

#include <algorithm>
#include <map>
#include <string>

#include "text/unicode.h"

namespace fleet::text {

CodePointSet::CodePointSet(std::initializer_list<CodePointRange> ranges) : ranges_(ranges) {
  normalize();
}

void CodePointSet::add(const CodePointSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

void CodePointSet::normalize() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  std::vector<CodePointRange> merged;
  for (const CodePointRange& range : ranges_) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  ranges_ = std::move(merged);
}

CodePointSet CodePointSet::complement() const {
  CodePointSet result;
  char32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) result.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) result.add(next, kLastCodePoint);
  return result;
}

bool CodePointSet::contains(char32_t code_point) const {
  auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), code_point,
      [](char32_t value, const CodePointRange& range) { return value < range.first; });
  return after != ranges_.begin() && code_point <= std::prev(after)->last;
}

const CodePointSet& white_space() {
  static const CodePointSet set{
      {0x09, 0x0D},     {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
      {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
  return set;
}

namespace {

// Letters, marks, decimal digits, connectors, and the symbols that are Other_Alphabetic.
CodePointSet word_with(const CodePointSet& more) {
  CodePointSet word{{0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  for (const char* name : {"L", "M", "Nd", "Nl", "Pc"}) word.add(*general_category(name));
  word.add(more);
  word.normalize();
  return word;
}

}  // namespace

const CodePointSet& pattern_word_characters(bool in_class) {
  static const CodePointSet within = word_with({});
  static const CodePointSet outside = word_with({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}});
  return in_class ? within : outside;
}

const CodePointSet& word_characters() {
  static const CodePointSet set = word_with({{0x200C, 0x200D}});  // Join_Control
  return set;
}

const CodePointSet* general_category(std::string_view name) {
  static const std::map<std::string, CodePointSet, std::less<>> sets = [] {
    std::map<std::string, CodePointSet, std::less<>> all;
    for_each_category_run([&](char32_t first, char32_t last, std::string_view category) {
      all[std::string(category)].add(first, last);
      all[std::string(category.substr(0, 1))].add(first, last);
    });
    for (auto& [category, set] : all) set.normalize();
    return all;
  }();
  const auto found = sets.find(name);
  return found == sets.end() ? nullptr : &found->second;
}

}  // namespace fleet::text
