// A regular expression as a tree. Internal to text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/code_point_set.h"

namespace fleet::text {

struct PatternNode {
  enum class Kind {
    kSet,       // one character of `set`
    kSequence,  // all parts
    kChoice,    // the first part that matches
    kRepeat,    // part 0, `least` to `most` times
    kAhead,     // the next character is in `set`
    kNotAhead,  // it is not, or the text ends
  } kind;
  CodePointSet set;
  std::vector<std::unique_ptr<PatternNode>> parts;
  int least = 0, most = 0;  // kRepeat; most -1: no limit
  bool lazy = false;        // kRepeat: as few times as possible
};

// Errors as those of SplitPattern; `where` names the place of the expression in them.
std::unique_ptr<PatternNode> parse_pattern_nodes(std::string_view expression,
                                                 const std::string& where);

}  // namespace fleet::text
