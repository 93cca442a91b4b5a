// The lines of files as rows in any order: an index of about half a byte a line is in memory, the
// lines are read when they are needed. Internal to data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/line_files.h"

namespace fleet::data {

// Returns why a line (without its end) cannot be used; "" if it can.
using LineCheck = std::function<std::string(std::string_view line)>;

struct LineIndexOptions {
  bool header = false;  // the first line of each file is not a row
  // Makes the check of one thread.
  std::function<LineCheck()> make_check;
  bool keep_all_broken = false;  // else the first ones of each part of a file
  int threads = 1;
  // Called from time to time while the files are read; may be null.
  std::function<void(double part)> progress;
};

// Immutable: every method is thread-safe. Empty lines, and those of blanks, do not count; a mark of
// UTF-8 at the start and carriage returns at the ends of lines are left out.
class LineIndex {
 public:
  struct Broken {
    size_t part;
    uint32_t line;  // in the part
    std::string why;
  };

  // Reads all files once. kUsage for text in UTF-16 or UTF-32, and for a line of more than 1 MiB;
  // kIo.
  LineIndex(std::vector<LineFile> files, const LineIndexOptions& options);
  // The index of the same files from the bytes of save(); null if these are damaged.
  static std::unique_ptr<const LineIndex> load(std::vector<LineFile> files, std::string_view bytes);
  std::string save() const;

  int64_t rows() const { return rows_; }
  // Lines that the check refuses; rows() leaves them out.
  int64_t broken_lines() const { return broken_lines_; }
  // The first of them, or all, in the order of the files.
  const std::vector<Broken>& broken() const { return broken_; }
  std::string name(const Broken& line) const { return name(line.part, line.line); }
  bool is_first_of_file(const Broken& line) const {
    return parts_[line.part].first_line + line.line == 0;
  }
  // Rows before this line.
  int64_t rows_before(const Broken& line) const;
  // Files without a row, for messages.
  std::vector<std::string> files_without_rows() const;

  // The line of a row, 0 <= row < rows(): in `scratch`. kIo.
  std::string_view read(int64_t row, std::string* scratch) const;
  std::string name(int64_t row) const;  // "day_0:17", safe to print on a terminal

 private:
  explicit LineIndex(std::vector<LineFile> files) : files_(std::move(files)) {}

  // The lines that begin in a range of a file.
  struct Part {
    size_t file = 0;
    uint64_t begin = 0, end = 0;  // bytes of the file: its first line begins, its last one ends
    int64_t first_row = 0;
    int64_t first_line = 0;  // in the file, from 0
    uint32_t lines = 0;      // with those that are not rows
    uint32_t broken = 0;
    std::vector<uint32_t> groups;   // where each group of lines begins, from `begin`
    std::vector<uint32_t> dropped;  // lines that are not rows, ascending
    int64_t rows() const { return int64_t{lines} - static_cast<int64_t>(dropped.size()); }
  };
  class PartReader;

  void make_parts();
  void open_files();
  void count();
  size_t part_of(int64_t row) const;
  // The row-th line of a part that is a row.
  static uint32_t line_of(const Part& part, int64_t row);
  std::string name(size_t part, uint32_t line) const;
  size_t read_bytes(size_t file, char* to, size_t bytes, uint64_t at) const;

  const std::vector<LineFile> files_;
  std::vector<UniqueFd> open_;  // by file; empty if there are too many
  std::vector<Part> parts_;
  std::vector<Broken> broken_;
  int64_t rows_ = 0, broken_lines_ = 0;
};

}  // namespace fleet::data
