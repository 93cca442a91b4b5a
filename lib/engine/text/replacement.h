// The normalizer and decoder Replace: every match of a pattern becomes a fixed text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/aligned_text.h"
#include "text/part_options.h"
#include "text/split_pattern.h"

namespace fleet::text {

// A "pattern" member: {"String": ".."} or {"Regex": ".."}.
SplitPattern pattern_option(const PartOptions& options);

class Replacement {
 public:
  explicit Replacement(const PartOptions& options);
  std::string apply(std::string_view text) const;
  void apply(AlignedText& text) const;

 private:
  // The next match at or after `at`; false: none.
  bool find(std::string_view text, size_t at, size_t* begin, size_t* end) const;

  std::string literal_;                          // what to look for; "": the pattern
  std::shared_ptr<const SplitPattern> pattern_;  // shared by copies of a step
  std::string content_;
};

}  // namespace fleet::text
