#include <glob.h>

#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "data/source.h"
#include "data/storage.h"
#include "data/tar_files.h"

namespace fleet::data {
namespace {

constexpr size_t kMost = 1'000'000;

[[noreturn]] void refuse(const std::string& pattern, const std::string& what) {
  throw Error(ErrorCode::kUsage, what, pattern,
              "write names, patterns of the shell (*.tar), {000..146} or {a,b}");
}

// The alternatives in a pair of braces.
std::vector<std::string> alternatives(const std::string& inner, const std::string& pattern) {
  const size_t dots = inner.find("..");
  if (dots == std::string::npos) return split(inner, ',');
  const std::string first = inner.substr(0, dots), last = inner.substr(dots + 2);
  long long from = 0, to = 0;
  if (!parse_int(first, &from) || !parse_int(last, &to) || from < 0 || to < from ||
      to - from >= static_cast<long long>(kMost)) {
    refuse(pattern, "{" + inner + "} is not a range of numbers");
  }
  std::vector<std::string> all;
  for (long long number = from; number <= to; ++number) {
    std::string text = std::to_string(number);
    if (text.size() < first.size()) text.insert(0, first.size() - text.size(), '0');
    all.push_back(text);
  }
  return all;
}

void expand(const std::string& text, const std::string& pattern, std::vector<std::string>* names) {
  const size_t open = text.find('{');
  if (open == std::string::npos) {
    if (names->size() >= kMost) refuse(pattern, "it stands for more than a million names");
    names->push_back(text);
    return;
  }
  const size_t close = text.find('}', open);
  if (close == std::string::npos) refuse(pattern, "'{' without '}'");
  for (const std::string& one : alternatives(text.substr(open + 1, close - open - 1), pattern)) {
    expand(text.substr(0, open) + one + text.substr(close + 1), pattern, names);
  }
}

// For glob(): characters of a folder's name stand for themselves.
std::string literal(const std::string& folder) {
  std::string text;
  for (const char c : folder) {
    if (std::strchr("*?[\\", c)) text += '\\';
    text += c;
  }
  return text;
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  thread_local int refused = 0;
  refused = 0;
  const int code = ::glob(
      pattern.c_str(), 0,
      [](const char*, int error) {
        if (may_pass(error)) refused = error;
        return refused;
      },
      &found);
  std::vector<std::string> names(found.gl_pathv, found.gl_pathv + (code == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  check_answer(refused, pattern);
  if (names.empty()) refuse(pattern, "no file matches");
  return names;
}

}  // namespace

std::vector<std::string> shard_names(const std::string& pattern, const std::string& root) {
  std::vector<std::string> expanded, names;
  expand(pattern, pattern, &expanded);
  for (const std::string& one : expanded) {
    if (one.find_first_of("*?[") == std::string::npos) {
      names.push_back(under_root(root, one));
      continue;
    }
    for (std::string& match : matches(under_root(literal(root), one)))
      names.push_back(std::move(match));
  }
  return names;
}

}  // namespace fleet::data
