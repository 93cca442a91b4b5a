// Small text helpers shared by configuration, arguments and messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleet {

std::string_view trim(std::string_view text);
std::string lower_case(std::string_view text);  // of ASCII letters
// Splits at every separator; "a,,b" has three parts, "" has none. Parts are trimmed.
std::vector<std::string> split(std::string_view text, char separator);
// The lines of a text, as they are; "a\n" has two, the second empty.
std::vector<std::string_view> lines_of(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
// The first `most` names of a list that may be long: "a, b, c and 4 more".
std::string join_first(std::span<const std::string> names, size_t most);

// The candidate nearest to `name`, or the only one that it abbreviates (lr: learning_rate), or "".
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);
// "did you mean 'x'?" if a candidate is close, else "known: a, b, c".
std::string suggestion(std::string_view name, std::span<const std::string> candidates);
// Like suggestion(), for a dotted path: the paths that end with the same name ("a.x" for "x",
// "b.x"; of several, one that is near as a whole), else the nearest path, else the paths with the
// nearest last name; "" if none is close.
std::string path_suggestion(std::string_view path, std::span<const std::string> known);

// Whole-string conversions; false if the text is not exactly one such number or is out of range.
bool parse_int(std::string_view text, long long* value);
bool parse_double(std::string_view text, double* value);
// Bytes: "4096", "64K", "1.5G", also "64KB" and "64KiB"; units are powers of 1024, up to T.
bool parse_size(std::string_view text, int64_t* bytes);

// Quotes a word for a shell, in single quotes if it needs them.
std::string shell_word(const std::string& text);
std::string hex(std::string_view bytes);  // "00ff"
std::string mebibytes(size_t bytes);      // "97.5 MiB"

}  // namespace fleet
