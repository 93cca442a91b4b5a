// The programs of regular expressions, literals and sets.
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "text/pattern_nodes.h"
#include "text/pattern_program.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

constexpr int kMostPatternSteps = 4000;

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
  const auto node = parse_pattern_nodes(expression, where);
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
