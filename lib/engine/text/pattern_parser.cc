// A regular expression to a PatternProgram, by recursive descent.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "text/pattern_program.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

constexpr int kMostPatternSteps = 4000;
constexpr int kMostPatternDepth = 50;
constexpr int kMostRepeats = 1000;

struct PatternNode;
using PatternNodes = std::vector<std::unique_ptr<PatternNode>>;

struct PatternNode {
  enum class Kind { kSet, kSequence, kChoice, kRepeat, kAhead, kNotAhead } kind;
  CodePointSet set;
  PatternNodes parts;
  int least = 0, most = 0;  // kRepeat; most -1: no limit
  bool lazy = false;
};

std::unique_ptr<PatternNode> pattern_node(PatternNode::Kind kind) {
  auto node = std::make_unique<PatternNode>();
  node->kind = kind;
  return node;
}

// ASCII letters of either case, with the two other characters whose case folds to one of them.
void add_other_case(CodePointSet& set) {
  CodePointSet more;
  for (char32_t lower = 'a'; lower <= 'z'; ++lower) {
    const char32_t upper = lower - 'a' + 'A';
    const char32_t other = lower == 's' ? 0x17F : lower == 'k' ? 0x212A : lower;
    if (!set.contains(lower) && !set.contains(upper) && !set.contains(other)) continue;
    for (const char32_t each : {lower, upper, other}) more.add(each, each);
  }
  set.add(more);
  set.normalize();
}

class PatternParser {
 public:
  PatternParser(std::string_view expression, const std::string& where)
      : text_(code_points_of(expression)), expression_(expression), where_(where) {}

  std::unique_ptr<PatternNode> parse() {
    auto node = choice(0);
    if (!done()) damaged("')' without '('");
    return node;
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  char32_t peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0xFFFFFFFF;
  }
  bool take(char32_t wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view wanted) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (peek(i) != static_cast<unsigned char>(wanted[i])) return false;
    }
    at_ += wanted.size();
    return true;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(
        ErrorCode::kUnsupported,
        "the regular expression '" + expression_ + "' uses " + what + ", which is not supported",
        where_);
  }
  [[noreturn]] void damaged(const std::string& what) const {
    throw Error(ErrorCode::kUsage, "the regular expression '" + expression_ + "' has " + what,
                where_);
  }

  std::unique_ptr<PatternNode> choice(int depth) {
    if (depth > kMostPatternDepth) refuse("more than 50 nested groups");
    const bool outer_case = ignore_case_;
    auto node = pattern_node(PatternNode::Kind::kChoice);
    do {
      node->parts.push_back(sequence(depth));
    } while (take('|'));
    ignore_case_ = outer_case;
    return node->parts.size() == 1 ? std::move(node->parts[0]) : std::move(node);
  }

  std::unique_ptr<PatternNode> sequence(int depth) {
    auto node = pattern_node(PatternNode::Kind::kSequence);
    while (!done() && peek() != '|' && peek() != ')') {
      if (take("(?i)")) {
        ignore_case_ = true;
        continue;
      }
      node->parts.push_back(repeated(atom(depth)));
    }
    return node;
  }

  std::unique_ptr<PatternNode> repeated(std::unique_ptr<PatternNode> inner) {
    int least, most;
    if (take('?')) {
      least = 0, most = 1;
    } else if (take('*')) {
      least = 0, most = -1;
    } else if (take('+')) {
      least = 1, most = -1;
    } else if (peek() == '{' && counts(&least, &most)) {
    } else {
      return inner;
    }
    if (inner->kind == PatternNode::Kind::kAhead || inner->kind == PatternNode::Kind::kNotAhead) {
      refuse("a quantifier after a lookahead");
    }
    auto node = pattern_node(PatternNode::Kind::kRepeat);
    node->least = least, node->most = most;
    node->lazy = take('?');
    if (peek() == '+') refuse("a possessive quantifier");
    if (peek() == '*' || peek() == '?' || peek() == '{') refuse("a quantifier after a quantifier");
    node->parts.push_back(std::move(inner));
    return node;
  }

  std::optional<int> number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + static_cast<int>(text_[at_++] - '0');
      if (value > kMostRepeats) refuse("a count above 1000");
    }
    return value;
  }

  // {2}, {2,} or {2,5}; a brace that is none of them is an ordinary character elsewhere, so it is
  // refused.
  bool counts(int* least, int* most) {
    ++at_;
    const auto low = number();
    if (!low) refuse("'{' without a count");
    *least = *most = *low;
    if (take(',')) {
      const auto high = number();
      *most = high ? *high : -1;
    }
    if (!take('}')) damaged("'{' without '}'");
    if (*most >= 0 && *most < *least) damaged("a range of counts that ends before it begins");
    return true;
  }

  std::unique_ptr<PatternNode> set_node(CodePointSet set, bool foldable) {
    set.normalize();
    if (ignore_case_) fold(set, foldable);
    auto node = pattern_node(PatternNode::Kind::kSet);
    node->set = std::move(set);
    return node;
  }

  void fold(CodePointSet& set, bool foldable) const {
    if (!foldable) refuse("a property inside (?i:..)");
    if (!set.empty() && set.ranges().back().last > 0x7F) {
      refuse("a character that is not ASCII inside (?i:..)");
    }
    add_other_case(set);
  }

  std::unique_ptr<PatternNode> atom(int depth) {
    const char32_t c = text_[at_];
    if (c == '(') return group(depth);
    if (c == '[') return char_class();
    if (c == '^' || c == '$') refuse(c == '^' ? "the anchor ^" : "the anchor $");
    if (c == '*' || c == '+' || c == '?') damaged("a quantifier with nothing before it");
    if (c == '{') refuse("'{' without a character before it");
    if (c == '.') {
      ++at_;
      auto node = pattern_node(PatternNode::Kind::kSet);
      node->set = CodePointSet{{'\n', '\n'}}.complement();
      return node;
    }
    if (c == '\\') {
      CodePointSet set;
      const bool foldable = escape(set, false);
      // \s, \d and their like are the same in both cases.
      if (!foldable) {
        auto node = pattern_node(PatternNode::Kind::kSet);
        set.normalize();
        node->set = std::move(set);
        return node;
      }
      return set_node(std::move(set), true);
    }
    ++at_;
    return set_node(CodePointSet{{c, c}}, true);
  }

  std::unique_ptr<PatternNode> group(int depth) {
    ++at_;
    bool fold = ignore_case_;
    std::optional<PatternNode::Kind> ahead;
    if (take("?:")) {
    } else if (take("?i:")) {
      fold = true;
    } else if (take("?=")) {
      ahead = PatternNode::Kind::kAhead;
    } else if (take("?!")) {
      ahead = PatternNode::Kind::kNotAhead;
    } else if (peek() == '?') {
      const char32_t kind = peek(1);
      refuse(kind == '<'   ? "a lookbehind or a named group (?<"
             : kind == '>' ? "an atomic group (?>"
                           : "a group (? of an unknown kind");
    }
    const bool outer_case = ignore_case_;
    ignore_case_ = fold;
    auto inner = choice(depth + 1);
    ignore_case_ = outer_case;
    if (!take(')')) damaged("'(' without ')'");
    if (!ahead) return inner;
    auto node = pattern_node(*ahead);
    node->set = one_character(*inner);
    return node;
  }

  // The characters of a lookahead: it must be one set, or a choice of such.
  CodePointSet one_character(const PatternNode& node) const {
    if (node.kind == PatternNode::Kind::kSet) return node.set;
    if (node.kind == PatternNode::Kind::kSequence && node.parts.size() == 1) {
      return one_character(*node.parts[0]);
    }
    if (node.kind == PatternNode::Kind::kChoice) {
      CodePointSet all;
      for (const auto& part : node.parts) all.add(one_character(*part));
      all.normalize();
      return all;
    }
    refuse("a lookahead of more than one character");
  }

  std::unique_ptr<PatternNode> char_class() {
    bool foldable = true;
    CodePointSet set = class_set(0, &foldable);
    auto node = pattern_node(PatternNode::Kind::kSet);
    node->set = std::move(set);
    return node;
  }

  CodePointSet class_set(int depth, bool* foldable) {
    if (depth > kMostPatternDepth) refuse("more than 50 nested classes");
    ++at_;  // [
    if (peek() == ':' && is_posix_class()) refuse("a POSIX class [:");
    const bool negated = take('^');
    CodePointSet set, fixed;
    bool first = true;
    while (first || peek() != ']') {
      if (done()) damaged("'[' without ']'");
      if (first && peek() == ']') refuse("']' as the first character of a class");
      first = false;
      class_item(depth, set, fixed);
    }
    ++at_;
    set.normalize();
    if (ignore_case_) fold(set, true);
    set.add(fixed);
    set.normalize();
    *foldable = fixed.empty();
    return negated ? set.complement() : set;
  }

  // "[:alpha:]"; "[:-@]" is a range.
  bool is_posix_class() const {
    size_t ahead = peek(1) == '^' ? 2 : 1;
    while (peek(ahead) >= 'a' && peek(ahead) <= 'z') ++ahead;
    return peek(ahead) == ':' && peek(ahead + 1) == ']';
  }

  // fixed: characters without another case, or where (?i:..) changes nothing.
  void class_item(int depth, CodePointSet& set, CodePointSet& fixed) {
    if (peek() == '[') {
      bool foldable = true;
      fixed.add(class_set(depth + 1, &foldable));
      return;
    }
    if (peek() == '&' && peek(1) == '&') refuse("an intersection of classes (&&)");
    char32_t low;
    if (peek() == '\\') {
      CodePointSet escaped;
      if (!escape(escaped, true)) {
        fixed.add(escaped);
        return;
      }
      low = escaped.ranges()[0].first;
    } else {
      low = text_[at_++];
    }
    char32_t high = low;
    if (peek() == '-' && peek(1) != ']' && peek(1) != 0xFFFFFFFF) {
      ++at_;
      if (peek() == '[') refuse("a class as the end of a range");
      if (peek() == '\\') {
        CodePointSet escaped;
        if (!escape(escaped, true)) damaged("a class as the end of a range");
        high = escaped.ranges()[0].first;
      } else {
        high = text_[at_++];
      }
      if (high < low) damaged("a range that ends before it begins");
    }
    set.add(low, high);
  }

  // Whether it stands for one character; then the set is that character.
  bool escape(CodePointSet& set, bool in_class) {
    ++at_;
    if (done()) damaged("a backslash at its end");
    const char32_t c = text_[at_++];
    const auto one = [&](char32_t code_point) {
      set.add(code_point, code_point);
      return true;
    };
    const auto either = [&](const CodePointSet& wanted, bool negated) {
      set.add(negated ? wanted.complement() : wanted);
      return false;
    };
    switch (c) {
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case 'x':
        return one(hex_code(2));
      case 'u':
        return one(hex_code(4));
      case 's':
      case 'S':
        return either(white_space(), c == 'S');
      case 'd':
      case 'D':
        return either(*general_category("Nd"), c == 'D');
      case 'w':
      case 'W':
        return either(pattern_word_characters(in_class), c == 'W');
      case 'p':
      case 'P':
        return either(property(), c == 'P');
      default:
        break;
    }
    const bool letter_or_digit =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter_or_digit) {
      refuse("\\" + std::string(1, static_cast<char>(c)) + (in_class ? " in a class" : ""));
    }
    return one(c);
  }

  // \x41, \x{1F600}, \u0041
  char32_t hex_code(int digits) {
    const bool braces = take('{');
    if (braces) digits = 8;
    char32_t value = 0;
    int read = 0;
    for (; read < digits; ++read, ++at_) {
      const char32_t c = peek();
      int digit;
      if (c >= '0' && c <= '9') {
        digit = static_cast<int>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<int>(c - 'a' + 10);
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<int>(c - 'A' + 10);
      } else {
        break;
      }
      value = value * 16 + static_cast<char32_t>(digit);
      if (value > kLastCodePoint) damaged("a code point above 10FFFF");
    }
    if (read == 0 || (!braces && read < digits) || (braces && !take('}'))) {
      damaged("an incomplete hexadecimal escape");
    }
    return value;
  }

  CodePointSet property() {
    std::string name;
    if (take('{')) {
      while (!done() && peek() != '}') append_utf8(text_[at_++], name);
      if (!take('}')) damaged("'\\p{' without '}'");
    } else if (!done()) {
      append_utf8(text_[at_++], name);
    }
    const bool negated = name.starts_with('^');
    const CodePointSet* set = general_category(std::string_view(name).substr(negated));
    if (!set) refuse("the property \\p{" + name + "}");
    return negated ? set->complement() : *set;
  }

  std::u32string text_;
  std::string expression_;
  const std::string& where_;
  size_t at_ = 0;
  bool ignore_case_ = false;
};

// Nodes to steps. Every piece of a program falls through to the step after it.
class PatternCompiler {
 public:
  explicit PatternCompiler(std::function<void()> too_large) : too_large_(std::move(too_large)) {}

  void add(const PatternNode& node) {
    switch (node.kind) {
      case PatternNode::Kind::kSet:
        append({PatternStep::Kind::kCharacter, set(node)});
        break;
      case PatternNode::Kind::kAhead:
        append({PatternStep::Kind::kAhead, set(node)});
        break;
      case PatternNode::Kind::kNotAhead:
        append({PatternStep::Kind::kNotAhead, set(node)});
        break;
      case PatternNode::Kind::kSequence:
        for (const auto& part : node.parts) add(*part);
        break;
      case PatternNode::Kind::kChoice:
        add_choice(node);
        break;
      case PatternNode::Kind::kRepeat:
        add_repeat(node);
        break;
    }
  }

  PatternProgram finish() {
    append({PatternStep::Kind::kMatch});
    return std::move(program_);
  }

 private:
  int next() const { return static_cast<int>(program_.steps.size()); }
  int append(PatternStep step) {
    if (next() >= kMostPatternSteps) too_large_();
    program_.steps.push_back(step);
    return next() - 1;
  }
  int set(const PatternNode& node) {
    std::vector<char32_t> bounds;
    for (const CodePointRange& range : node.set.ranges()) {
      bounds.insert(bounds.end(), {range.first, range.last});
    }
    const auto [found, added] = sets_.emplace(bounds, static_cast<int>(program_.sets.size()));
    if (added) program_.sets.push_back(node.set);
    return found->second;
  }
  int append_jump() { return append({PatternStep::Kind::kFork}); }
  void aim(int step, int first, int second) {
    program_.steps[static_cast<size_t>(step)].first = first;
    program_.steps[static_cast<size_t>(step)].second = second;
  }

  void add_choice(const PatternNode& node) {
    std::vector<int> ends;
    for (size_t i = 0; i + 1 < node.parts.size(); ++i) {
      const int fork = append_jump();
      add(*node.parts[i]);
      ends.push_back(append_jump());
      aim(fork, fork + 1, next());
    }
    add(*node.parts.back());
    for (const int end : ends) aim(end, next(), -1);
  }

  void add_repeat(const PatternNode& node) {
    const PatternNode& inner = *node.parts[0];
    for (int i = 0; i < node.least; ++i) add(inner);
    const auto fork_to = [&](int fork, int body, int after) {
      node.lazy ? aim(fork, after, body) : aim(fork, body, after);
    };
    if (node.most < 0) {
      const int fork = append_jump();
      add(inner);
      aim(append_jump(), fork, -1);
      fork_to(fork, fork + 1, next());
      return;
    }
    std::vector<int> forks;
    for (int i = node.least; i < node.most; ++i) {
      forks.push_back(append_jump());
      add(inner);
    }
    for (const int fork : forks) fork_to(fork, fork + 1, next());
  }

  std::function<void()> too_large_;
  PatternProgram program_;
  std::map<std::vector<char32_t>, int> sets_;  // ranges: number
};

}  // namespace

PatternProgram parse_pattern(std::string_view expression, const std::string& where) {
  const auto node = PatternParser(expression, where).parse();
  PatternCompiler compiler(
      [&] { throw Error(ErrorCode::kUnsupported, "a regular expression is too large", where); });
  compiler.add(*node);
  return compiler.finish();
}

PatternProgram literal_pattern(std::string_view text) {
  PatternProgram program;
  for (const char32_t c : code_points_of(text)) {
    program.steps.push_back({PatternStep::Kind::kCharacter, static_cast<int>(program.sets.size())});
    program.sets.push_back(CodePointSet{{c, c}});
  }
  program.steps.push_back({PatternStep::Kind::kMatch});
  return program;
}

PatternProgram set_pattern(std::span<const SetPattern> alternatives) {
  PatternProgram program;
  const auto next = [&] { return static_cast<int>(program.steps.size()); };
  std::vector<int> ends;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    const int fork = next();
    program.steps.push_back({PatternStep::Kind::kFork, -1, fork + 1});
    program.steps.push_back({PatternStep::Kind::kCharacter, static_cast<int>(i)});
    program.sets.push_back(alternatives[i].set);
    // A run goes back to its character; both leave through the last fork.
    ends.push_back(next());
    program.steps.push_back({PatternStep::Kind::kFork, -1, alternatives[i].run ? fork + 1 : -1});
    program.steps[static_cast<size_t>(fork)].second = next();
  }
  program.steps.back().second = next();
  for (const int end : ends) program.steps[static_cast<size_t>(end)].second = next();
  program.steps[static_cast<size_t>(ends.back()) - 2].second = -1;
  program.steps.push_back({PatternStep::Kind::kMatch});
  return program;
}

}  // namespace fleet::text
