#include "text/corpus.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "base/text_file.h"
#include "text/gzip_text.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

constexpr size_t kReadBytes = 1 << 20;

// A mapped file; its pages are read when they are used.
std::string_view map_corpus_file(const CorpusFile& file, void** map) {
  const RegularFile open = open_regular_file(file.path);
  if (open.size != file.bytes) {
    throw Error(ErrorCode::kUsage, "the file has changed since this command began", file.path,
                "run the command again");
  }
  if (open.size == 0) return {};
  const auto bytes = static_cast<size_t>(open.size);
  *map = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, open.fd.get(), 0);
  if (*map == MAP_FAILED) {
    *map = nullptr;
    throw_errno("cannot map the file into memory", file.path);
  }
  return {static_cast<const char*>(*map), bytes};
}

// The reason from the parser, without its number of the error and its place: a line of the file is
// its line 1.
std::string parse_failure(const JsonError& error) {
  const std::string text = error.what();
  const size_t place = text.find("column ");
  const size_t reason = place == std::string::npos ? place : text.find(": ", place);
  return reason == std::string::npos ? text : text.substr(reason + 2);
}

}  // namespace

std::vector<CorpusPart> corpus_parts(std::span<const CorpusFile> files, int64_t part_bytes) {
  std::vector<CorpusPart> parts;
  for (size_t i = 0; i < files.size(); ++i) {
    const int64_t bytes = files[i].bytes;
    const int64_t step = files[i].compressed ? std::max<int64_t>(bytes, 1) : part_bytes;
    for (int64_t begin = 0; begin < bytes; begin += step) {
      parts.push_back({.file = i, .begin = begin, .end = std::min(bytes, begin + step)});
    }
  }
  return parts;
}

CorpusText::CorpusText(const CorpusFile& file) {
  if (file.compressed) {
    GzipText gzip(file.path);
    while (gzip.read(&owned_, kReadBytes) > 0) {
    }
    bytes_ = owned_;
  } else {
    bytes_ = map_corpus_file(file, &map_);
  }
  try {
    mark_ = size_of_mark(bytes_.substr(0, 4), file.path);
  } catch (...) {
    if (map_) ::munmap(map_, bytes_.size());
    throw;
  }
}

CorpusText::~CorpusText() {
  if (map_) ::munmap(map_, bytes_.size());
}

struct LineReader::State {
  CorpusFile file;
  // A mapped file.
  std::unique_ptr<CorpusText> text;
  size_t begin = 0, at = 0, end = 0, line = 0;
  // A compressed file: the part of it that is read, of which `at` bytes are used.
  std::unique_ptr<GzipText> gzip;
  std::string buffer;
  int64_t lines = 0;
  bool ended = false;

  bool next_mapped(std::string_view* line_out) {
    if (at >= end) return false;
    const std::string_view all = text->bytes();
    line = at;
    const size_t found = all.find('\n', at);
    at = found == std::string_view::npos ? all.size() : found + 1;
    *line_out = all.substr(line, at - line);
    return true;
  }

  bool next_compressed(std::string_view* line_out) {
    size_t searched = at;
    for (;;) {
      const size_t found = buffer.find('\n', searched);
      if (found != std::string::npos || ended) {
        const size_t stop = found == std::string::npos ? buffer.size() : found + 1;
        if (at == stop) return false;
        *line_out = std::string_view(buffer).substr(at, stop - at);
        if (lines++ == 0) line_out->remove_prefix(size_of_mark(line_out->substr(0, 4), file.path));
        at = stop;
        return true;
      }
      buffer.erase(0, at);
      at = 0;
      searched = buffer.size();
      ended = gzip->read(&buffer, kReadBytes) == 0;
    }
  }
};

LineReader::LineReader(const CorpusFile& file, const CorpusPart& part)
    : state_(std::make_unique<State>()) {
  state_->file = file;
  if (file.compressed) {
    state_->gzip = std::make_unique<GzipText>(file.path);
    return;
  }
  state_->text = std::make_unique<CorpusText>(file);
  const std::string_view all = state_->text->bytes();
  state_->begin = static_cast<size_t>(part.begin);
  state_->end = static_cast<size_t>(part.end);
  size_t first = state_->text->mark();
  if (part.begin > 0) {  // a line that begins before belongs to the part before
    const size_t found = all.find('\n', state_->begin - 1);
    first = found == std::string_view::npos ? all.size() : found + 1;
  }
  state_->at = first;
}

LineReader::~LineReader() = default;

bool LineReader::next(std::string_view* line) {
  return state_->gzip ? state_->next_compressed(line) : state_->next_mapped(line);
}

std::string LineReader::where() const {
  if (state_->gzip) return state_->file.path + ":" + std::to_string(state_->lines);
  return place_of_byte(state_->file.path, state_->text->bytes(), state_->line);
}

int64_t LineReader::position() const {
  return state_->gzip ? state_->lines : static_cast<int64_t>(state_->line);
}

int64_t LineReader::done() const {
  if (state_->gzip) return state_->gzip->compressed_bytes();
  const size_t at = std::min(state_->at, state_->end);
  return static_cast<int64_t>(std::max(at, state_->begin) - state_->begin);
}

std::optional<std::string> json_line_text(std::string_view line, const std::string& key,
                                          const std::string& where) {
  line = trim(line);
  if (line.empty()) return std::nullopt;
  const auto refuse = [&](const std::string& what, const std::string& next) {
    throw Error(ErrorCode::kUsage, what, where, next);
  };
  Json json;
  try {
    json = Json::parse(line);
  } catch (const JsonError& error) {
    refuse("the line is not JSON: " + parse_failure(error), "correct or remove the line");
  }
  if (!json.is_object()) refuse("the line is not a JSON object", "correct or remove the line");
  const Json* text = json.find(key);
  if (!text) {
    refuse("the line has no key '" + key + "', but " + join_first(json.keys(), 8),
           "name the key of the texts with --text_key");
  }
  if (!text->is_string()) {
    refuse("the value of '" + key + "' is not a string",
           "name the key of the texts with --text_key");
  }
  return text->get<std::string>();
}

std::optional<size_t> first_bad_byte(std::string_view text) {
  if (is_valid_utf8(text)) return std::nullopt;
  for (size_t at = 0; at < text.size();) {
    size_t bad = 0;
    const size_t bytes = valid_character(text, at, &bad);
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::nullopt;
}

std::string place_of_byte(const std::string& path, std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  return path + ":" + std::to_string(std::count(before.begin(), before.end(), '\n') + 1);
}

}  // namespace fleet::text
