#include "data/line_index.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <memory>

#include "base/error.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "base/text_file.h"
#include "text/part_workers.h"

namespace fleet::data {
namespace {

constexpr uint64_t kPartBytes = uint64_t{4} << 20;
constexpr size_t kLongestLine = size_t{1} << 20, kPiece = size_t{64} << 10;
constexpr uint32_t kGroup = 8;          // lines
constexpr size_t kMostOpenFiles = 256;  // more are opened for each read
constexpr uint32_t kKept = 3;           // broken lines of a part whose reasons are kept

std::string_view without_end(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == line.npos; }

}  // namespace

// Reads one part after the other; for one thread.
class LineIndex::PartReader {
 public:
  PartReader(const LineIndex& index, const LineIndexOptions& options)
      : index_(index),
        header_(options.header),
        keep_all_(options.keep_all_broken),
        check_(options.make_check()) {}

  void read(size_t number, Part* part, std::vector<Broken>* broken) {
    const LineFile& file = index_.files_[part->file];
    const uint64_t limit = part->end;
    if (!load(file, part)) return;
    std::string_view rest = text_;
    rest.remove_prefix(part->begin - loaded_at_);
    uint64_t at = part->begin;
    while (at < limit && !rest.empty()) {
      const size_t end = rest.find('\n');
      const std::string_view line = rest.substr(0, end);
      if (line.size() > kLongestLine) refuse_length(file, at);
      if (part->lines % kGroup == 0)
        part->groups.push_back(static_cast<uint32_t>(at - part->begin));
      take(without_end(line), number, part, broken);
      ++part->lines;
      const size_t bytes = end == rest.npos ? rest.size() : end + 1;
      rest.remove_prefix(bytes);
      at += bytes;
    }
    part->end = at;
  }

 private:
  void take(std::string_view line, size_t number, Part* part, std::vector<Broken>* broken) {
    const bool header = header_ && is_first_part_ && part->lines == 0;
    if (!header && !is_blank(line)) {
      std::string why = check_(line);
      if (why.empty()) return;
      const bool keep = keep_all_ || part->broken < kKept;
      if (keep) broken->push_back({number, part->lines, std::move(why)});
      ++part->broken;
    }
    part->dropped.push_back(part->lines);
  }

  // Reads the part's bytes and the rest of its last line, and moves part->begin to its first line.
  // Returns false if no line begins in it.
  bool load(const LineFile& file, Part* part) {
    is_first_part_ = part->begin == 0;
    loaded_at_ = is_first_part_ ? 0 : part->begin - 1;  // the byte before tells if a line begins
    text_.clear();
    append(part->file, part->end - loaded_at_);
    if (is_first_part_) {
      part->begin = size_of_mark(text_, file.shown);
    } else {
      const size_t end = text_.find('\n');
      if (end == text_.npos) {
        if (text_.size() > kLongestLine) refuse_length(file, loaded_at_);
        part->end = part->begin;
        return false;
      }
      part->begin = loaded_at_ + end + 1;
    }
    if (part->begin >= part->end) {
      part->end = part->begin;
      return false;
    }
    const size_t owned = text_.size();
    while (text_.back() != '\n' && loaded_at_ + text_.size() < file.size) {
      const size_t before = text_.size();
      append(part->file, std::min<uint64_t>(kPiece, file.size - loaded_at_ - before));
      const size_t end = text_.find('\n', before);
      if (end != text_.npos) text_.resize(end + 1);
      if (text_.size() - owned > kLongestLine) refuse_length(file, loaded_at_ + owned);
    }
    return true;
  }

  void append(size_t file, uint64_t bytes) {
    const size_t before = text_.size();
    text_.resize(before + bytes);
    if (index_.read_bytes(file, text_.data() + before, bytes, loaded_at_ + before) < bytes) {
      throw Error(ErrorCode::kIo, "the file has become shorter", index_.files_[file].shown);
    }
  }

  [[noreturn]] static void refuse_length(const LineFile& file, uint64_t at) {
    throw Error(ErrorCode::kUsage, "a line of more than 1 MiB at byte " + std::to_string(at),
                file.shown, "name files of text with a row on each line");
  }

  const LineIndex& index_;
  const bool header_, keep_all_;
  const LineCheck check_;
  std::string text_;
  uint64_t loaded_at_ = 0;  // byte of the file at which text_ begins
  bool is_first_part_ = false;
};

LineIndex::LineIndex(std::vector<LineFile> files, const LineIndexOptions& options)
    : files_(std::move(files)) {
  open_files();
  make_parts();
  std::vector<std::vector<Broken>> broken(parts_.size());
  std::atomic<size_t> done{0};
  const auto worker = [&] {
    return [&, reader = std::make_shared<PartReader>(*this, options)](size_t number) {
      reader->read(number, &parts_[number], &broken[number]);
      ++done;
    };
  };
  text::PartWorkers::run(parts_.size(), options.threads, worker, [&] {
    if (options.progress) {
      options.progress(static_cast<double>(done) / static_cast<double>(parts_.size()));
    }
  });
  for (std::vector<Broken>& some : broken) {
    std::move(some.begin(), some.end(), std::back_inserter(broken_));
  }
  count();
}

void LineIndex::open_files() {
  if (files_.size() > kMostOpenFiles) return;
  for (const LineFile& file : files_) open_.push_back(open_regular_file(file.path).fd);
}

void LineIndex::make_parts() {
  for (size_t file = 0; file < files_.size(); ++file) {
    const uint64_t size = files_[file].size;
    for (uint64_t begin = 0; begin < size; begin += kPartBytes) {
      Part& part = parts_.emplace_back();
      part.file = file;
      part.begin = begin;
      part.end = std::min(begin + kPartBytes, size);
    }
  }
}

void LineIndex::count() {
  int64_t lines = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.groups.shrink_to_fit();
    part.dropped.shrink_to_fit();
    if (i > 0 && part.file != parts_[i - 1].file) lines = 0;
    part.first_line = lines;
    part.first_row = rows_;
    lines += part.lines;
    rows_ += part.rows();
    broken_lines_ += part.broken;
  }
}

size_t LineIndex::read_bytes(size_t file, char* to, size_t bytes, uint64_t at) const {
  const LineFile& one = files_[file];
  if (!open_.empty()) return read_at(open_[file], to, bytes, one.begin + at, one.shown);
  const RegularFile opened = open_regular_file(one.path);
  return read_at(opened.fd, to, bytes, one.begin + at, one.shown);
}

size_t LineIndex::part_of(int64_t row) const {
  const auto after =
      std::upper_bound(parts_.begin(), parts_.end(), row,
                       [](int64_t value, const Part& p) { return value < p.first_row; });
  return static_cast<size_t>(after - parts_.begin()) - 1;
}

uint32_t LineIndex::line_of(const Part& part, int64_t row) {
  // dropped[i] - i rows come before the line dropped[i].
  size_t low = 0, high = part.dropped.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (int64_t{part.dropped[middle]} - static_cast<int64_t>(middle) <= row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return static_cast<uint32_t>(row + static_cast<int64_t>(low));
}

int64_t LineIndex::rows_before(const Broken& line) const {
  const Part& part = parts_[line.part];
  const auto dropped = std::lower_bound(part.dropped.begin(), part.dropped.end(), line.line);
  return part.first_row + line.line - (dropped - part.dropped.begin());
}

std::vector<std::string> LineIndex::files_without_rows() const {
  std::vector<int64_t> rows(files_.size());
  for (const Part& part : parts_) rows[part.file] += part.rows();
  std::vector<std::string> names;
  for (size_t i = 0; i < files_.size(); ++i) {
    if (rows[i] == 0) names.push_back(files_[i].shown);
  }
  return names;
}

std::string_view LineIndex::read(int64_t row, std::string* scratch) const {
  const Part& part = parts_[part_of(row)];
  const uint32_t line = line_of(part, row - part.first_row), group = line / kGroup;
  const uint64_t begin = part.begin + part.groups[group];
  const uint64_t end =
      group + 1 < part.groups.size() ? part.begin + part.groups[group + 1] : part.end;
  scratch->resize(end - begin);
  if (read_bytes(part.file, scratch->data(), scratch->size(), begin) < scratch->size()) {
    throw Error(ErrorCode::kIo, "the file has become shorter", files_[part.file].shown);
  }
  std::string_view rest = *scratch;
  for (uint32_t i = line % kGroup; i > 0; --i) {
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  }
  return without_end(rest.substr(0, rest.find('\n')));
}

std::string LineIndex::name(size_t part, uint32_t line) const {
  return files_[parts_[part].file].shown + ":" + std::to_string(parts_[part].first_line + line + 1);
}

std::string LineIndex::name(int64_t row) const {
  const size_t part = part_of(row);
  return name(part, line_of(parts_[part], row - parts_[part].first_row));
}

}  // namespace fleet::data
