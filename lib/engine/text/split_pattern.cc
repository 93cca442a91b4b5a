// The automaton of a regular expression, by subset construction over ordered sets of steps.
#include "text/split_pattern.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "text/pattern_program.h"

namespace fleet::text {
namespace {

constexpr size_t kMostStates = 2000;
constexpr size_t kMostClasses = 250;
// Bounds the time that a hostile expression takes to compile: (state, class, step) triples.
constexpr size_t kMostWork = 100'000'000;

}  // namespace

class PatternAutomaton {
 public:
  PatternAutomaton(PatternProgram program, std::string name, std::string where, SplitPattern& out)
      : program_(std::move(program)), name_(std::move(name)), where_(std::move(where)), out_(out) {}

  void build() {
    classify();
    out_.steps_.assign(out_.classes_, SplitPattern::kDead);
    state_of({0});
    for (size_t state = 1; state <= states_.size(); ++state) {
      for (size_t c = 0; c < out_.classes_; ++c) fill(state, c);
    }
    for (size_t c = 0; c < out_.classes_; ++c) {
      if (out_.steps_[out_.classes_ + c] & SplitPattern::kMatched) {
        throw Error(ErrorCode::kUnsupported, name_ + " matches the empty text", where_);
      }
    }
  }

 private:
  [[noreturn]] void too_large() const {
    throw Error(ErrorCode::kUnsupported, name_ + " is too large", where_);
  }

  // Characters that are in the same sets are one class.
  void classify() {
    std::vector<char32_t> starts{0};
    for (const CodePointSet& set : program_.sets) {
      for (const CodePointRange& range : set.ranges()) {
        starts.push_back(range.first);
        if (range.last < kLastCodePoint) starts.push_back(range.last + 1);
      }
    }
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    std::map<std::vector<bool>, uint8_t> classes;
    std::vector<uint8_t> of_code_point(size_t{kLastCodePoint} + 1);
    for (size_t i = 0; i < starts.size(); ++i) {
      std::vector<bool> within;
      for (const CodePointSet& set : program_.sets) within.push_back(set.contains(starts[i]));
      const auto [found, added] = classes.emplace(within, static_cast<uint8_t>(classes.size()));
      if (added) members_.push_back(within);
      if (classes.size() > kMostClasses) too_large();
      const char32_t end = i + 1 < starts.size() ? starts[i + 1] : kLastCodePoint + 1;
      std::fill(of_code_point.begin() + starts[i], of_code_point.begin() + end, found->second);
    }
    out_.classes_ = members_.size() + 1;
    std::copy_n(of_code_point.begin(), 128, out_.ascii_class_.begin());
    std::map<std::vector<uint8_t>, uint16_t> blocks;
    for (size_t first = 0; first < of_code_point.size(); first += 64) {
      const std::vector<uint8_t> block(of_code_point.begin() + static_cast<ptrdiff_t>(first),
                                       of_code_point.begin() + static_cast<ptrdiff_t>(first + 64));
      const auto [found, added] = blocks.emplace(block, static_cast<uint16_t>(blocks.size()));
      if (added) {
        out_.class_blocks_.insert(out_.class_blocks_.end(), block.begin(), block.end());
      }
      out_.block_of_.push_back(found->second);
    }
  }

  bool is_in(int set, size_t c) const {
    return c < members_.size() && members_[c][static_cast<size_t>(set)];
  }

  size_t state_of(const std::vector<int>& steps) {
    if (steps.empty()) return 0;
    const auto [found, added] = numbers_.emplace(steps, states_.size() + 1);
    if (added) {
      if (states_.size() >= kMostStates) too_large();
      states_.push_back(steps);
      out_.steps_.resize(out_.steps_.size() + out_.classes_);
    }
    return found->second;
  }

  // Transition of a state for a character of class c: follow forks in order with the character
  // ahead, stop at a match, and step over the character everywhere else.
  void fill(size_t state, size_t c) {
    std::vector<char> seen(program_.steps.size());
    std::vector<int> after, stack;
    bool matched = false;
    const std::vector<int> starts = states_[state - 1];
    for (const int start : starts) {
      stack.push_back(start);
      while (!stack.empty() && !matched) {
        const int at = stack.back();
        stack.pop_back();
        if (at < 0 || seen[static_cast<size_t>(at)]) continue;
        seen[static_cast<size_t>(at)] = 1;
        if (++work_ > kMostWork) too_large();
        const PatternStep& step = program_.steps[static_cast<size_t>(at)];
        switch (step.kind) {
          case PatternStep::Kind::kCharacter:
            if (is_in(step.set, c)) after.push_back(at + 1);
            break;
          case PatternStep::Kind::kFork:
            stack.push_back(step.second);
            stack.push_back(step.first);
            break;
          case PatternStep::Kind::kAhead:
            if (is_in(step.set, c)) stack.push_back(at + 1);
            break;
          case PatternStep::Kind::kNotAhead:
            if (!is_in(step.set, c)) stack.push_back(at + 1);
            break;
          case PatternStep::Kind::kMatch:
            matched = true;
            break;
        }
      }
      if (matched) break;
    }
    const size_t next = state_of(after);
    out_.steps_[state * out_.classes_ + c] = static_cast<SplitPattern::Step>(
        next * out_.classes_ | (matched ? SplitPattern::kMatched : 0));
  }

  PatternProgram program_;
  std::string name_, where_;
  SplitPattern& out_;
  std::vector<std::vector<bool>> members_;  // [class][set]
  std::vector<std::vector<int>> states_;    // [n - 1]: state n
  std::map<std::vector<int>, size_t> numbers_;
  size_t work_ = 0;
};

SplitPattern::SplitPattern(std::string_view expression, const std::string& where) {
  PatternAutomaton(parse_pattern(expression, where),
                   "the regular expression '" + std::string(expression) + "'", where, *this)
      .build();
}

SplitPattern SplitPattern::literal(std::string_view text, const std::string& where) {
  SplitPattern pattern;
  PatternAutomaton(literal_pattern(text), "the pattern '" + std::string(text) + "'", where, pattern)
      .build();
  return pattern;
}

SplitPattern SplitPattern::of_sets(std::span<const SetPattern> alternatives) {
  SplitPattern pattern;
  PatternAutomaton(set_pattern(alternatives), "a pattern", "", pattern).build();
  return pattern;
}

size_t SplitPattern::find(std::string_view text, size_t from, size_t* begin) const {
  for (size_t at = from; at < text.size();) {
    size_t next;
    const Step first = steps_[classes_ + static_cast<size_t>(class_of(text, at, &next))];
    if (first != kDead) {
      const size_t end = match(text, at);
      if (end != kNone) {
        *begin = at;
        return end;
      }
    }
    at = next;
  }
  return kNone;
}

}  // namespace fleet::text
