// A parsed regular expression, for the automaton of split_pattern.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/code_point_set.h"
#include "text/split_pattern.h"

namespace fleet::text {

struct PatternStep {
  enum class Kind : uint8_t {
    kCharacter,  // reads one character of `set`, then continues with the next step
    kFork,       // tries `first`, then `second`
    kAhead,      // continues if the next character is in `set`
    kNotAhead,   // continues if it is not, or the text ends
    kMatch,
  };
  Kind kind;
  int set = -1;
  int first = -1, second = -1;
};

struct PatternProgram {
  std::vector<PatternStep> steps;
  std::vector<CodePointSet> sets;
};

// Errors as those of SplitPattern.
PatternProgram parse_pattern(std::string_view expression, const std::string& where);
PatternProgram literal_pattern(std::string_view text);
PatternProgram set_pattern(std::span<const SetPattern> alternatives);

}  // namespace fleet::text
