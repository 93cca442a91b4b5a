// Texts of files: plain text, where a file is a document, and JSON lines, where a line is one.
// Files that gzip has compressed, by their first bytes, are decompressed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleet::text {

struct CorpusFile {
  std::string path;
  bool json_lines = false, compressed = false;
  int64_t bytes = 0;     // on the disk
  int64_t modified = 0;  // nanoseconds since 1970
};

// The files of words that name files, folders or patterns ("data/*.jsonl"), in the order of the
// words; those of a folder (with all folders below it: .txt, .jsonl, .ndjson, each also with .gz)
// and of a pattern by name. A file that is named itself counts as text if it does not end in .jsonl
// or .ndjson. kUsage for "-", a .gz that is not gzip, formats that are neither (.parquet, .json,
// .zst, ...), for a folder or a pattern without files, and for a file that is named twice.
// kNotFound, kIo.
std::vector<CorpusFile> find_corpus(const std::vector<std::string>& words);

// The work of one thread at a time: bytes [begin, end) of a file. Of lines, those that begin
// there. A compressed file is one part.
struct CorpusPart {
  size_t file = 0;
  int64_t begin = 0, end = 0;
};
std::vector<CorpusPart> corpus_parts(std::span<const CorpusFile> files, int64_t part_bytes);

// The bytes of a whole file: mapped into memory, or decompressed there. Immutable: thread-safe.
class CorpusText {
 public:
  // kUsage naming the path for text in UTF-16 or UTF-32, and for a damaged .gz. kIo.
  explicit CorpusText(const CorpusFile& file);
  ~CorpusText();
  CorpusText(const CorpusText&) = delete;
  // With a mark of UTF-8 at the start, if the file has one.
  std::string_view bytes() const { return bytes_; }
  size_t mark() const { return mark_; }  // bytes of that mark

 private:
  std::string owned_;
  void* map_ = nullptr;
  std::string_view bytes_;
  size_t mark_ = 0;
};

// The lines of a part, one after the other. Memory: a line of a compressed file. Not thread-safe.
class LineReader {
 public:
  // Errors as CorpusText.
  LineReader(const CorpusFile& file, const CorpusPart& part);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  // false at the end. The line includes its line end; valid until the next call.
  bool next(std::string_view* line);
  // "file:12" of the last line. Counts the lines before it: for messages.
  std::string where() const;
  // First byte of the last line, or its number in a compressed file.
  int64_t position() const;
  // Bytes of the part that are read.
  int64_t done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The string at `key` of a line of JSON; nullopt for a blank line. kUsage at `where` for a line
// that is no JSON object, or has no string there.
std::optional<std::string> json_line_text(std::string_view line, const std::string& key,
                                          const std::string& where);

// The index of the first byte that is not UTF-8.
std::optional<size_t> first_bad_byte(std::string_view text);
// "file:12", of the line with this byte.
std::string place_of_byte(const std::string& path, std::string_view text, size_t at);

}  // namespace fleet::text
