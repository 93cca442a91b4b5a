#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "base/nearest_path.h"

namespace fleet {

std::string_view trim(std::string_view text) {
  const char* blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (size_t start = 0;;) {
    const size_t end = text.find(separator, start);
    parts.emplace_back(trim(text.substr(start, end - start)));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string join_first(std::span<const std::string> names, size_t most) {
  if (names.size() <= most) return join(names, ", ");
  return join(names.first(most), ", ") + " and " + std::to_string(names.size() - most) + " more";
}

namespace {

// The number of missing, extra or different letters and of swapped neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = last;
    last = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// The most letters in which a mistyped name may differ.
size_t typos_of(std::string_view name) {
  return name.size() < 6 ? 1 : name.size() < 9 ? 2 : name.size() / 3;
}

bool are_initials(std::string_view name, std::string_view of) {
  std::string initials;
  for (const std::string& word : split(of, '_')) initials += word.substr(0, 1);
  return initials.size() > 1 && initials == name;
}

bool is_start(std::string_view name, std::string_view of) {
  return name.size() > 2 && of.starts_with(name);
}

// Whether all letters of a short name occur in this order, from the first letter on.
bool is_contraction(std::string_view name, std::string_view of) {
  if (name.size() < 2 || name.size() > 4 || of.empty() || name[0] != of[0]) return false;
  size_t at = 0;
  for (const char letter : of) at += at < name.size() && letter == name[at] ? 1 : 0;
  return at == name.size();
}

// The only candidate for which `abbreviates` is true; "" if none or several are.
std::string only_long_form(std::string_view name, std::span<const std::string> candidates,
                           bool (*abbreviates)(std::string_view name, std::string_view of)) {
  std::string found;
  for (const std::string& candidate : candidates) {
    if (candidate == found || !abbreviates(name, candidate)) continue;
    if (!found.empty()) return {};
    found = candidate;
  }
  return found;
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  std::string initials = only_long_form(name, candidates, are_initials);
  if (!initials.empty()) return initials;
  for (const std::string& candidate : candidates) {
    if (lower_case(candidate) == lower_case(name)) return candidate;
  }
  const std::string* best = nullptr;
  size_t best_distance = typos_of(name) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  if (best) return *best;
  std::string start = only_long_form(name, candidates, is_start);
  return start.empty() ? only_long_form(name, candidates, is_contraction) : start;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  const std::string nearest = nearest_name(name, candidates);
  if (!nearest.empty()) return "did you mean '" + nearest + "'?";
  return "known: " + join(candidates, ", ");
}

static std::string_view last_name(std::string_view path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 is 0
}

// Including its dot.
static std::string_view section_of(std::string_view path) {
  return path.substr(0, path.size() - last_name(path).size());
}

// The path of the same section whose last name is meant.
static std::string nearest_sibling(std::string_view path, std::span<const std::string> known) {
  std::vector<std::string> names;
  for (const std::string& other : known) {
    if (section_of(other) == section_of(path)) names.emplace_back(last_name(other));
  }
  const std::string nearest = nearest_name(last_name(path), names);
  return nearest.empty() ? nearest : std::string(section_of(path)) + nearest;
}

std::string nearest_path(std::string_view path, std::span<const std::string> known) {
  std::string sibling = nearest_sibling(path, known);
  if (!sibling.empty()) return sibling;
  const size_t most = typos_of(last_name(path));
  std::vector<std::string> near;
  for (const std::string& other : known) {
    const bool end_is_near = edit_distance(last_name(path), last_name(other)) <= most;
    if (end_is_near || edit_distance(path, other) <= most) near.push_back(other);
  }
  return nearest_name(path, near);
}

// Of several, the only one that is as good as equal to `path` as a whole.
static std::string those_ending_in(std::string_view name, std::string_view path,
                                   std::span<const std::string> known) {
  std::vector<std::string> those;
  for (const std::string& other : known) {
    if (last_name(other) == name) those.push_back(other);
  }
  std::vector<std::string> equal;
  for (const std::string& other : those) {
    constexpr size_t kMistyped = 2;  // letters
    if (edit_distance(path, other) <= kMistyped) equal.push_back(other);
  }
  if (equal.size() == 1) those = equal;
  return those.empty() ? "" : "'" + join(those, "' or '") + "'";
}

std::string path_suggestion(std::string_view path, std::span<const std::string> known) {
  std::string meant = those_ending_in(last_name(path), path, known);
  if (meant.empty()) {
    const std::string nearest = nearest_path(path, known);
    if (!nearest.empty()) meant = "'" + nearest + "'";
  }
  if (meant.empty()) {
    std::vector<std::string> names;
    for (const std::string& other : known) names.emplace_back(last_name(other));
    const std::string nearest = nearest_name(last_name(path), names);
    if (!nearest.empty()) meant = those_ending_in(nearest, path, known);
  }
  return meant.empty() ? meant : "did you mean " + meant + "?";
}

bool parse_int(std::string_view text, long long* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_double(std::string_view text, double* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=,./:@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) {
    return text;
  }
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

bool parse_size(std::string_view text, int64_t* bytes) {
  constexpr std::string_view kUnits = "KMGT";
  const size_t at = text.find_first_not_of("0123456789.");
  if (at == std::string_view::npos) {
    long long whole = 0;
    if (!parse_int(text, &whole)) return false;
    *bytes = whole;
    return true;
  }
  const auto letter = static_cast<char>(std::toupper(static_cast<unsigned char>(text[at])));
  const size_t unit = kUnits.find(letter);
  const std::string_view suffix = text.substr(at + 1);
  double value = 0;
  if (unit == std::string_view::npos || (!suffix.empty() && suffix != "B" && suffix != "iB") ||
      !parse_double(text.substr(0, at), &value) || value > 1e6) {
    return false;
  }
  *bytes = static_cast<int64_t>(value * static_cast<double>(int64_t{1} << (10 * (unit + 1))));
  return true;
}

std::string mebibytes(size_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

}  // namespace fleet
