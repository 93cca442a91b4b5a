// Divides texts into sentences, and encodes them one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace fleet::text {

enum class SentenceForm {
  kNone,   // texts are not divided
  kSplit,  // rules find the sentences of a text: split_sentences()
  kLines,  // each line is a sentence; in a text file an empty line ends a document
};
// "split", "lines". kUsage for another name.
SentenceForm sentence_form(const std::string& name);

using SentenceVisitor = std::function<void(std::string_view sentence)>;

// Calls `sentence` for each sentence of a text, in order, without the white space around it. A
// sentence ends at an empty line; and behind ".", "!" or "?" with closing quotes and brackets, if
// white space follows and then no lower-case ASCII letter, unless the period ends an initial or a
// common English abbreviation ("J.", "Dr.", "e.g."); and behind the full stops of Chinese and
// Japanese. Views point into the text; line breaks inside stay.
void split_sentences(std::string_view text, const SentenceVisitor& sentence);
// The lines of a text that are not empty, without the white space around them.
void split_lines(std::string_view text, const SentenceVisitor& sentence);
// Whether a line has white space only.
bool is_empty_line(std::string_view line);

// The ids behind a sentence and behind a document in a token file of sentences: the two numbers
// behind the vocabulary.
struct SentenceMarks {
  uint32_t sentence = 0, document = 0;
  // The ids of such a file are below this.
  size_t vocabulary() const { return size_t{document} + 1; }
};
SentenceMarks sentence_marks(size_t vocabulary);

// Encodes the sentences of documents with their marks. A sentence begins with a space unless it
// begins its document, and its line breaks become spaces, so that its words have the tokens of
// running text. Texts of special tokens are ordinary text. Not thread-safe.
class SentenceEncoder {
 public:
  // The tokenizer must live.
  SentenceEncoder(const Tokenizer& tokenizer, SentenceForm form);
  // Continues a document with these sentences. Appends to ids.
  void add(std::string_view text, std::vector<uint32_t>& ids);
  // The next add() continues a document that another encoder began.
  void continue_document() { begun_ = true; }
  // Appends the document's mark if it has a sentence; returns whether it has.
  bool end_document(std::vector<uint32_t>& ids);

 private:
  void add_sentence(std::string_view sentence, std::vector<uint32_t>& ids);

  const Tokenizer& tokenizer_;
  const SentenceForm form_;
  const SentenceMarks marks_;
  bool begun_ = false;
  std::string sentence_;
};

// Cuts a text at the first line behind an empty line of each slot of equal length, so that threads
// can encode the pieces. Immutable: thread-safe.
class ParagraphCutter {
 public:
  // first: where the text begins, behind a mark of UTF-8. The text must live.
  ParagraphCutter(std::string_view text, size_t first, size_t slot_bytes)
      : text_(text), first_(first), slot_bytes_(slot_bytes) {}
  size_t slots() const { return (text_.size() + slot_bytes_ - 1) / slot_bytes_; }
  // nullopt: the slot has none. Slot 0 has its cut at the text's beginning.
  std::optional<size_t> cut(size_t slot) const;
  // The first cut of this slot or a later one; the end of the text if none is left.
  size_t next_cut(size_t slot) const;

 private:
  const std::string_view text_;
  const size_t first_, slot_bytes_;
};

}  // namespace fleet::text
