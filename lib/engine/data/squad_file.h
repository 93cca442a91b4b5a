// Files of SQuAD's format: paragraphs with questions whose answers are pieces of the paragraph.
// Internal to data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fleet::data {

struct SquadAnswer {
  std::string text;
  size_t begin = 0;  // byte of the context
};

struct SquadQuestion {
  std::string id, question;
  std::vector<SquadAnswer> answers;  // none: the context does not answer it
  size_t context = 0;                // index in SquadFile::contexts
};

struct SquadFile {
  std::vector<std::string> contexts;
  std::vector<SquadQuestion> questions;
  bool may_have_none = false;  // version 2: is_impossible is given
};

// Appends the questions of a file. Version 1.1, and 2.0 with is_impossible, whose plausible answers
// do not count. kUsage naming the file, and the question by its id, for a file of another form, and
// for an answer that is not at answer_start (counted in code points, as Python does).
void read_squad_file(const std::string& path, SquadFile* all);

// The same without answers, which may be missing. A file that ends in .jsonl or .ndjson has a
// question in each line: "question", "context" and, unless its place is to be used, "id".
void read_unanswered(const std::string& path, SquadFile* all);

}  // namespace fleet::data
