// The section "pre_tokenizer" of a tokenizer.json, as a list of steps that split a text further and
// further.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/aligned_text.h"
#include "text/part_options.h"
#include "text/split_pattern.h"

namespace fleet::text {

// The fate of the text that a pattern matches, and of the text between the matches.
enum class SplitBehavior {
  kRemoved,
  kIsolated,  // each match is a piece, and each text between matches
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous,  // matches without text between them are one piece
};

struct PreTokenizerStep {
  enum class Kind { kSplit, kPrefixSpace, kMetaspace } kind;
  std::optional<SplitPattern> pattern;  // kSplit, and kMetaspace if it splits
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // the text between the matches counts as a match
  std::string replacement;
  enum class Prepend { kAlways, kFirst, kNever } prepend = Prepend::kNever;
};

// Const member functions may be called by several threads at once.
class PreTokenizer {
 public:
  // A piece as text, or with the bytes that it comes from.
  template <typename Text>
  using PieceOf = std::function<void(Text piece)>;
  using Piece = PieceOf<std::string_view>;
  using AlignedPiece = PieceOf<AlignedView>;

  PreTokenizer(const Json& json, const std::string& where);  // null: one piece
  bool byte_level() const { return byte_level_; }
  // Whether split() depends on `first`.
  bool uses_first() const;
  // The text must be valid UTF-8. first: it begins the input.
  void split(std::string_view text, bool first, const Piece& piece) const;
  void split(AlignedView text, bool first, const AlignedPiece& piece) const;

 private:
  void add(const Json& json, const std::string& where, int depth);
  void add_byte_level(const PartOptions& options);
  void add_metaspace(const PartOptions& options);
  void add_split(SplitPattern pattern, SplitBehavior behavior, bool invert);
  template <typename Text>
  void run(size_t step, Text text, bool first, const PieceOf<Text>& piece) const;
  template <typename Text>
  void run_split(size_t step, Text text, bool first, const PieceOf<Text>& piece) const;
  template <typename Text>
  void run_merged(size_t step, Text text, bool first, const PieceOf<Text>& piece) const;
  template <typename Text>
  void run_metaspace(size_t step, Text text, bool first, const PieceOf<Text>& piece) const;

  std::vector<PreTokenizerStep> steps_;
  bool byte_level_ = false;
};

}  // namespace fleet::text
