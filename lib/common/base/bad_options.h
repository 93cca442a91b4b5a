// Command-line options that cannot be used: reports all of them at once, with the corrected command
// line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/option_group.h"

namespace fleet {

struct BadOption {
  std::string what, where, next;  // as in Error; an empty `what` marks a mere change of spelling
  size_t at = 0, count = 1;       // its words on the command line
  // The replacement words; empty to leave the option out, nullopt if no replacement is known.
  std::optional<std::vector<std::string>> instead = std::vector<std::string>();
};

// The known flag that an unknown one probably means, "" if none is close. One-letter flags are
// neither corrected nor suggested.
std::string nearest_flag(const std::string& flag, const std::vector<Option>& known);

// `words` with every bad option replaced, as a command to copy. `program` is its first words.
// nullopt if an option has no replacement.
std::optional<std::vector<std::string>> corrected_words(const std::vector<std::string>& words,
                                                        const std::vector<BadOption>& bad);

// Throws kUsage with all of `bad`, one per line, followed by the command to copy if possible
// and `accepts` takes it. Returns if `bad` is empty.
void refuse_bad_options(const std::string& program, const std::vector<std::string>& words,
                        std::vector<BadOption> bad,
                        const std::function<bool(const std::vector<std::string>&)>& accepts);

}  // namespace fleet
