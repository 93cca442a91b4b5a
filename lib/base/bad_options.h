// What of a command line's options cannot be used: all of it is told at once, with the line to
// write instead.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/option_group.h"

namespace fleet {

struct BadOption {
  std::string what, where, next;  // as an Error has them; no `what`: only written otherwise
  size_t at = 0, count = 1;       // its words in the line
  // The words to write in their place, none to leave it out; nothing where that is not known.
  std::optional<std::vector<std::string>> instead = std::vector<std::string>();
};

// The flag that is probably meant by one that nobody knows, "" where none is near. It is never one
// of one letter, nor guessed from one.
std::string nearest_flag(const std::string& flag, const std::vector<Option>& known);

// `words` with what the bad ones say instead, as a command to copy. `program` is its first words.
// Nothing where one has no replacement.
std::optional<std::vector<std::string>> corrected_words(const std::vector<std::string>& words,
                                                        const std::vector<BadOption>& bad);

// Throws kUsage with all of `bad`, a line each, and below them the command to copy, where there is
// one that `accepts` takes. Returns where nothing is bad.
void refuse_bad_options(const std::string& program, const std::vector<std::string>& words,
                        std::vector<BadOption> bad,
                        const std::function<bool(const std::vector<std::string>&)>& accepts);

}  // namespace fleet
