// Recursive descent.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "text/pattern_nodes.h"
#include "text/pattern_reader.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

constexpr int kMostPatternDepth = 50;

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
  PatternParser(std::string_view expression, const std::string& where) : in_(expression, where) {}

  std::unique_ptr<PatternNode> parse() {
    auto node = choice(0);
    if (!in_.done()) in_.damaged("')' without '('");
    return node;
  }

 private:
  std::unique_ptr<PatternNode> choice(int depth) {
    if (depth > kMostPatternDepth) in_.refuse("more than 50 nested groups");
    const bool outer_case = ignore_case_;
    auto node = pattern_node(PatternNode::Kind::kChoice);
    do {
      node->parts.push_back(sequence(depth));
    } while (in_.take('|'));
    ignore_case_ = outer_case;
    return node->parts.size() == 1 ? std::move(node->parts[0]) : std::move(node);
  }

  std::unique_ptr<PatternNode> sequence(int depth) {
    auto node = pattern_node(PatternNode::Kind::kSequence);
    while (!in_.done() && in_.peek() != '|' && in_.peek() != ')') {
      if (in_.take("(?i)")) {
        ignore_case_ = true;
        continue;
      }
      node->parts.push_back(repeated(atom(depth)));
    }
    return node;
  }

  std::unique_ptr<PatternNode> repeated(std::unique_ptr<PatternNode> inner) {
    int least, most;
    if (in_.take('?')) {
      least = 0, most = 1;
    } else if (in_.take('*')) {
      least = 0, most = -1;
    } else if (in_.take('+')) {
      least = 1, most = -1;
    } else if (in_.peek() == '{' && counts(&least, &most)) {
    } else {
      return inner;
    }
    if (inner->kind == PatternNode::Kind::kAhead || inner->kind == PatternNode::Kind::kNotAhead) {
      in_.refuse("a quantifier after a lookahead");
    }
    auto node = pattern_node(PatternNode::Kind::kRepeat);
    node->least = least, node->most = most;
    node->lazy = in_.take('?');
    if (in_.peek() == '+') in_.refuse("a possessive quantifier");
    if (in_.peek() == '*' || in_.peek() == '?' || in_.peek() == '{')
      in_.refuse("a quantifier after a quantifier");
    node->parts.push_back(std::move(inner));
    return node;
  }

  // {2}, {2,} or {2,5}; a brace that is none of them is an ordinary character elsewhere, so it is
  // refused.
  bool counts(int* least, int* most) {
    in_.skip();
    const auto low = in_.number();
    if (!low) in_.refuse("'{' without a count");
    *least = *most = *low;
    if (in_.take(',')) {
      const auto high = in_.number();
      *most = high ? *high : -1;
    }
    if (!in_.take('}')) in_.damaged("'{' without '}'");
    if (*most >= 0 && *most < *least) in_.damaged("a range of counts that ends before it begins");
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
    if (!foldable) in_.refuse("a property inside (?i:..)");
    if (!set.empty() && set.ranges().back().last > 0x7F) {
      in_.refuse("a character that is not ASCII inside (?i:..)");
    }
    add_other_case(set);
  }

  std::unique_ptr<PatternNode> atom(int depth) {
    const char32_t c = in_.peek();
    if (c == '(') return group(depth);
    if (c == '[') return char_class();
    if (c == '^' || c == '$') in_.refuse(c == '^' ? "the anchor ^" : "the anchor $");
    if (c == '*' || c == '+' || c == '?') in_.damaged("a quantifier with nothing before it");
    if (c == '{') in_.refuse("'{' without a character before it");
    if (c == '.') {
      in_.skip();
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
    in_.skip();
    return set_node(CodePointSet{{c, c}}, true);
  }

  std::unique_ptr<PatternNode> group(int depth) {
    in_.skip();
    bool fold = ignore_case_;
    std::optional<PatternNode::Kind> ahead;
    if (in_.take("?:")) {
    } else if (in_.take("?i:")) {
      fold = true;
    } else if (in_.take("?=")) {
      ahead = PatternNode::Kind::kAhead;
    } else if (in_.take("?!")) {
      ahead = PatternNode::Kind::kNotAhead;
    } else if (in_.peek() == '?') {
      const char32_t kind = in_.peek(1);
      in_.refuse(kind == '<'   ? "a lookbehind or a named group (?<"
                 : kind == '>' ? "an atomic group (?>"
                               : "a group (? of an unknown kind");
    }
    const bool outer_case = ignore_case_;
    ignore_case_ = fold;
    auto inner = choice(depth + 1);
    ignore_case_ = outer_case;
    if (!in_.take(')')) in_.damaged("'(' without ')'");
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
    in_.refuse("a lookahead of more than one character");
  }

  std::unique_ptr<PatternNode> char_class() {
    bool foldable = true;
    CodePointSet set = class_set(0, &foldable);
    auto node = pattern_node(PatternNode::Kind::kSet);
    node->set = std::move(set);
    return node;
  }

  CodePointSet class_set(int depth, bool* foldable) {
    if (depth > kMostPatternDepth) in_.refuse("more than 50 nested classes");
    in_.skip();  // [
    if (in_.peek() == ':' && is_posix_class()) in_.refuse("a POSIX class [:");
    const bool negated = in_.take('^');
    CodePointSet set, fixed;
    bool first = true;
    while (first || in_.peek() != ']') {
      if (in_.done()) in_.damaged("'[' without ']'");
      if (first && in_.peek() == ']') in_.refuse("']' as the first character of a class");
      first = false;
      class_item(depth, set, fixed);
    }
    in_.skip();
    set.normalize();
    if (ignore_case_) fold(set, true);
    set.add(fixed);
    set.normalize();
    *foldable = fixed.empty();
    return negated ? set.complement() : set;
  }

  // "[:alpha:]"; "[:-@]" is a range.
  bool is_posix_class() const {
    size_t ahead = in_.peek(1) == '^' ? 2 : 1;
    while (in_.peek(ahead) >= 'a' && in_.peek(ahead) <= 'z') ++ahead;
    return in_.peek(ahead) == ':' && in_.peek(ahead + 1) == ']';
  }

  // fixed: characters without another case, or where (?i:..) changes nothing.
  void class_item(int depth, CodePointSet& set, CodePointSet& fixed) {
    if (in_.peek() == '[') {
      bool foldable = true;
      fixed.add(class_set(depth + 1, &foldable));
      return;
    }
    if (in_.peek() == '&' && in_.peek(1) == '&') in_.refuse("an intersection of classes (&&)");
    char32_t low;
    if (in_.peek() == '\\') {
      CodePointSet escaped;
      if (!escape(escaped, true)) {
        fixed.add(escaped);
        return;
      }
      low = escaped.ranges()[0].first;
    } else {
      low = in_.next();
    }
    char32_t high = low;
    if (in_.peek() == '-' && in_.peek(1) != ']' && in_.peek(1) != PatternReader::kEnd) {
      in_.skip();
      if (in_.peek() == '[') in_.refuse("a class as the end of a range");
      if (in_.peek() == '\\') {
        CodePointSet escaped;
        if (!escape(escaped, true)) in_.damaged("a class as the end of a range");
        high = escaped.ranges()[0].first;
      } else {
        high = in_.next();
      }
      if (high < low) in_.damaged("a range that ends before it begins");
    }
    set.add(low, high);
  }

  // Whether it stands for one character; then the set is that character.
  bool escape(CodePointSet& set, bool in_class) {
    in_.skip();
    if (in_.done()) in_.damaged("a backslash at its end");
    const char32_t c = in_.next();
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
        return one(in_.hex_code(2));
      case 'u':
        return one(in_.hex_code(4));
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
      in_.refuse("\\" + std::string(1, static_cast<char>(c)) + (in_class ? " in a class" : ""));
    }
    return one(c);
  }

  CodePointSet property() {
    std::string name;
    if (in_.take('{')) {
      while (!in_.done() && in_.peek() != '}') append_utf8(in_.next(), name);
      if (!in_.take('}')) in_.damaged("'\\p{' without '}'");
    } else if (!in_.done()) {
      append_utf8(in_.next(), name);
    }
    const bool negated = name.starts_with('^');
    const CodePointSet* set = general_category(std::string_view(name).substr(negated));
    if (!set) in_.refuse("the property \\p{" + name + "}");
    return negated ? set->complement() : *set;
  }

  PatternReader in_;
  bool ignore_case_ = false;
};

}  // namespace

std::unique_ptr<PatternNode> parse_pattern_nodes(std::string_view expression,
                                                 const std::string& where) {
  return PatternParser(expression, where).parse();
}

}  // namespace fleet::text
