#include "base/bad_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

std::string bare_name(const std::string& flag) {
  const std::string canonical = canonical_flag(flag);
  return canonical.substr(std::min(canonical.find_first_not_of('-'), canonical.size()));
}

// "--nproc" is the start of exactly one name.
std::string completed(const std::string& name, const std::vector<std::string>& names) {
  constexpr size_t kLeast = 4;
  std::string found;
  for (const std::string& candidate : names) {
    if (name.size() < kLeast || !candidate.starts_with(name)) continue;
    if (!found.empty()) return {};
    found = candidate;
  }
  return found;
}

std::string line_of(const BadOption& bad) {
  return (bad.where.empty() ? "" : bad.where + ": ") + bad.what +
         (bad.next.empty() ? "" : "; " + bad.next);
}

std::string command_text(const std::string& program, const std::vector<std::string>& words) {
  std::string text = program;
  for (const std::string& word : words) text += " " + shell_word(word);
  return text;
}

}  // namespace

std::string nearest_flag(const std::string& flag, const std::vector<Option>& known) {
  const std::string name = bare_name(flag);
  if (name.size() < 2) return {};
  std::vector<std::string> names;
  for (const Option& option : known) {
    if (option.internal || option.foreign) continue;
    for (const std::string& own : option.flags()) {
      if (own.starts_with("--")) names.push_back(bare_name(own));
    }
  }
  std::string nearest = completed(name, names);
  if (nearest.empty()) nearest = nearest_name(name, names);
  return nearest.empty() ? std::string() : "--" + nearest;
}

std::optional<std::vector<std::string>> corrected_words(const std::vector<std::string>& words,
                                                        const std::vector<BadOption>& bad) {
  std::vector<std::string> corrected;
  auto next = bad.begin();
  for (size_t at = 0; at < words.size();) {
    if (next == bad.end() || at < next->at) {
      corrected.push_back(words[at++]);
      continue;
    }
    if (!next->instead) return std::nullopt;
    corrected.insert(corrected.end(), next->instead->begin(), next->instead->end());
    at = std::max(at, next->at + next->count);
    ++next;
  }
  return corrected;
}

void refuse_bad_options(const std::string& program, const std::vector<std::string>& words,
                        std::vector<BadOption> bad,
                        const std::function<bool(const std::vector<std::string>&)>& accepts) {
  std::vector<std::string> lines;
  std::stable_sort(bad.begin(), bad.end(),
                   [](const BadOption& a, const BadOption& b) { return a.at < b.at; });
  for (const BadOption& one : bad) {
    if (!one.what.empty()) lines.push_back(line_of(one));
  }
  if (lines.empty()) return;
  const auto corrected = corrected_words(words, bad);
  const std::string command =
      corrected && accepts(*corrected) ? "\ncorrected: " + command_text(program, *corrected) : "";
  const std::string text =
      lines.size() == 1
          ? lines[0]
          : std::to_string(lines.size()) + " options cannot be used:\n  " + join(lines, "\n  ");
  throw Error(ErrorCode::kUsage, text + command);
}

}  // namespace fleet
