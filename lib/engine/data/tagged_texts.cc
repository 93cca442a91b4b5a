#include "data/tagged_texts.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet::data {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& where,
                         const std::string& next) {
  throw Error(ErrorCode::kUsage, what, where, next);
}

std::vector<std::string> texts_of(const Json& list, const std::string& key, bool numbers,
                                  const std::string& where) {
  std::vector<std::string> texts;
  for (const Json& one : list.elements()) {
    if (one.is_string()) {
      texts.push_back(one.get<std::string>());
    } else if (numbers && one.is_number_integer()) {
      texts.push_back(std::to_string(one.get<int64_t>()));
    } else {
      refuse("'" + key + "' has an element of another type", where,
             numbers ? "write a list of texts, or of whole numbers" : "write a list of texts");
    }
  }
  return texts;
}

const Json* list_at(const Json& line, const std::string& key) {
  const Json* found = line.find(key);
  return found && found->is_array() ? found : nullptr;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!(text = trim(text)).empty()) {
    const size_t end = std::min(text.find_first_of(" \t\n\v\f\r"), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::vector<std::string> json_words(const Json& line, const TaggedKeys& keys,
                                    const std::string& where) {
  if (const Json* words = list_at(line, keys.words)) {
    return texts_of(*words, keys.words, false, where);
  }
  const Json* text = keys.labelled ? nullptr : line.find(keys.words);
  if (text && text->is_string()) return words_of(text->get<std::string>());
  refuse("no list '" + keys.words + "'", where, "set data.words_key to the key of the words");
}

void parse_json_line(std::string_view content, const TaggedKeys& keys, TaggedText* text) {
  const std::string where = text->where();
  const std::optional<Json> line = Json::try_parse(content);
  if (!line || !line->is_object()) {
    refuse("the line is not a JSON object", where,
           keys.labelled ? "write {\"tokens\": [...], \"labels\": [...]}"
                         : "write {\"tokens\": [...]}");
  }
  text->words = json_words(*line, keys, where);
  if (!keys.labelled) return;
  std::string labels_key = keys.labels;
  if (labels_key.empty()) labels_key = list_at(*line, "labels") ? "labels" : "ner_tags";
  const Json* labels = list_at(*line, labels_key);
  if (!labels) {
    refuse("no list '" + labels_key + "'", where, "set data.labels_key to the key of the labels");
  }
  text->labels = texts_of(*labels, labels_key, true, where);
}

void check_sizes(const TaggedText& text) {
  if (text.words.size() == text.labels.size()) return;
  refuse(counted(std::ssize(text.words), "word") + " with " +
             counted(std::ssize(text.labels), "label"),
         text.where(), "give each word one label");
}

void read_json_lines(text::LineReader& lines, const std::string& path, const TaggedKeys& keys,
                     const std::function<void(TaggedText)>& take) {
  int64_t number = 0;
  for (std::string_view line; lines.next(&line);) {
    ++number;
    if (trim(line).empty()) continue;
    TaggedText text{.words = {}, .labels = {}, .path = path, .line = number};
    parse_json_line(line, keys, &text);
    if (keys.labelled) check_sizes(text);
    take(std::move(text));
  }
}

void read_columns(text::LineReader& lines, const std::string& path, bool labelled,
                  const std::function<void(TaggedText)>& take) {
  int64_t number = 0;
  TaggedText text{.words = {}, .labels = {}, .path = path};
  const auto finish = [&] {
    if (!text.words.empty()) take(std::move(text));
    text = {.words = {}, .labels = {}, .path = path};
  };
  for (std::string_view line; lines.next(&line);) {
    ++number;
    const std::string_view content = trim(line);
    if (content.empty()) {
      finish();
      continue;
    }
    if (content.starts_with("-DOCSTART-")) continue;
    const size_t first = std::min(content.find_first_of(" \t"), content.size());
    if (labelled && first == content.size()) {
      refuse("'" + shown_name(content, 100) + "' has no label", path + ":" + std::to_string(number),
             "write a word, a blank and its label in each line, and an empty line between texts");
    }
    if (text.words.empty()) text.line = number;
    text.lines.push_back(number);
    text.words.emplace_back(content.substr(0, first));
    if (labelled) text.labels.emplace_back(content.substr(content.find_last_of(" \t") + 1));
  }
  finish();
}

}  // namespace

std::string TaggedText::where() const { return path + ":" + std::to_string(line); }

std::string TaggedText::where(size_t word) const {
  return path + ":" + std::to_string(lines.empty() ? line : lines[word]);
}

void read_tagged_texts(const text::CorpusFile& file, const TaggedKeys& keys,
                       const std::function<void(TaggedText)>& take) {
  const std::string path = shown_path(file.path);
  for (const text::CorpusPart& part : text::corpus_parts({&file, 1}, INT64_MAX)) {
    text::LineReader lines(file, part);
    if (file.json_lines) {
      read_json_lines(lines, path, keys, take);
    } else {
      read_columns(lines, path, keys.labelled, take);
    }
  }
}

}  // namespace fleet::data
