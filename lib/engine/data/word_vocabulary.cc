#include "data/word_vocabulary.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "base/cache_file.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/terminal_text.h"
#include "data/maker_lock.h"
#include "text/word_counts.h"

namespace fleet::data {
namespace {

constexpr uint64_t kWordsVersion = 1;  // increase it to invalidate all caches
constexpr std::string_view kWhite = " \t\n\v\f\r";

using LineVisitor = std::function<void(std::span<const std::string_view> words)>;

void visit_line(std::string_view line, std::vector<std::string_view>* words,
                const LineVisitor& visit) {
  words->clear();
  for (size_t at = line.find_first_not_of(kWhite); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kWhite, at), line.size());
    words->push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kWhite, end);
  }
  if (!words->empty()) visit(*words);
}

// Calls visit for each line of the texts that has words. The words are valid during the call.
void visit_lines(const WordTexts& texts, const LineVisitor& visit) {
  std::vector<std::string_view> words;
  const auto whole = std::numeric_limits<int64_t>::max() / 2;
  for (const text::CorpusPart& part : text::corpus_parts(texts.files, whole)) {
    const text::CorpusFile& file = texts.files[part.file];
    text::LineReader reader(file, part);
    for (std::string_view line; reader.next(&line);) {
      if (!file.json_lines) {
        visit_line(line, &words, visit);
        continue;
      }
      const auto text = text::json_line_text(line, texts.text_key, reader.where());
      for (std::string_view rest = text ? *text : std::string_view(); !rest.empty();) {
        const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
        visit_line(rest.substr(0, end), &words, visit);
        rest.remove_prefix(end);
      }
    }
  }
}

// The path of something made of the texts.
std::string cache_path(const WordTexts& texts, uint64_t hash, const char* ending) {
  hash = hash_text(texts.text_key, hash_bytes(&kWordsVersion, sizeof kWordsVersion, hash));
  for (const text::CorpusFile& file : texts.files) {
    hash = hash_text(file.json_lines ? "lines" : "text", hash);
    hash = hash_file_state(file.path, file.modified, hash);
  }
  const std::string name =
      format_printf("words-%016llx", static_cast<unsigned long long>(hash)) + ending;
  const std::string path = texts.folder.empty() ? cache_file(name) : texts.folder + "/" + name;
  if (!path.empty()) return path;
  throw Error(ErrorCode::kUsage, "no folder for the words is known: HOME is not set",
              "data.token_cache", "set it to a folder");
}

WordVocabulary frequent_words(const text::WordTable& table, const WordRules& rules) {
  std::vector<const text::WordTable::Entry*> kept;
  WordVocabulary vocabulary;
  for (const text::WordTable::Entry& entry : table.slots()) {
    if (entry.count == 0) continue;
    vocabulary.left_out += static_cast<int64_t>(entry.count);
    if (static_cast<int64_t>(entry.count) >= rules.min_count) kept.push_back(&entry);
  }
  std::sort(kept.begin(), kept.end(), [&](const auto* a, const auto* b) {
    if (a->count != b->count) return a->count > b->count;
    return table.word(*a) < table.word(*b);
  });
  if (rules.most > 0 && std::ssize(kept) > rules.most) kept.resize(static_cast<size_t>(rules.most));
  for (const auto* entry : kept) {
    vocabulary.words.emplace_back(table.word(*entry));
    vocabulary.counts.push_back(static_cast<int64_t>(entry->count));
    vocabulary.left_out -= static_cast<int64_t>(entry->count);
  }
  return vocabulary;
}

// The first line counts the occurrences of other words.
void make_words_file(const std::string& path, const WordTexts& texts, const WordRules& rules) {
  spdlog::info("counting the words of {}", texts.name);
  text::WordTable table;
  visit_lines(texts, [&](std::span<const std::string_view> words) {
    for (const std::string_view word : words) table.add(word);
  });
  const WordVocabulary vocabulary = frequent_words(table, rules);
  write_file_atomically(path, std::to_string(vocabulary.left_out) + "\n" + text_of(vocabulary));
}

// The number in [begin, end) of the text; -1: another form.
int64_t count_in(std::string_view text) {
  int64_t count = 0;
  if (text.empty() || text.size() > 18) return -1;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return -1;
    count = 10 * count + (digit - '0');
  }
  return count;
}

[[noreturn]] void refuse_words(const std::string& what, const std::string& path, int64_t line) {
  throw Error(ErrorCode::kUsage, what, path + ":" + std::to_string(line),
              "write a word, a tab and its count on each line, each word once");
}

WordVocabulary parse_vocabulary(std::string_view text, const std::string& path, int64_t line) {
  WordVocabulary vocabulary;
  std::unordered_map<std::string_view, int64_t> lines;
  for (; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view all = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t tab = all.find('\t');
    const int64_t count = tab == std::string_view::npos ? -1 : count_in(all.substr(tab + 1));
    if (count < 0 || tab == 0) refuse_words("the line is not a word and its count", path, line);
    if (!lines.emplace(all.substr(0, tab), line).second) {
      refuse_words("the word is also in line " + std::to_string(lines.at(all.substr(0, tab))), path,
                   line);
    }
    vocabulary.words.emplace_back(all.substr(0, tab));
    vocabulary.counts.push_back(count);
  }
  return vocabulary;
}

void make_numbers_file(const std::string& path, const WordTexts& texts,
                       const WordVocabulary& vocabulary, text::TokenWidth width) {
  spdlog::info("numbering the words of {}", texts.name);
  std::unordered_map<std::string_view, uint32_t> numbers;
  for (size_t i = 0; i < vocabulary.words.size(); ++i) {
    numbers.emplace(vocabulary.words[i], static_cast<uint32_t>(i));
  }
  text::TokenWriter writer(path, text::TokenFormat::kNanoGpt, width);
  std::vector<uint32_t> line;
  visit_lines(texts, [&](std::span<const std::string_view> words) {
    line.clear();
    for (const std::string_view word : words) {
      const auto found = numbers.find(word);
      if (found != numbers.end()) line.push_back(found->second);
    }
    if (line.size() < 2) return;
    line.push_back(static_cast<uint32_t>(vocabulary.words.size()));
    writer.add(line);
  });
  writer.finish();
}

}  // namespace

WordVocabulary count_words(const WordTexts& texts, const WordRules& rules) {
  uint64_t hash = hash_bytes(&rules.min_count, sizeof rules.min_count);
  hash = hash_bytes(&rules.most, sizeof rules.most, hash);
  const std::string path = cache_path(texts, hash, ".txt");
  make_once(path, "which counts the words of " + texts.name,
            [&](MakerLock&) { make_words_file(path, texts, rules); });
  const std::string text = read_file(path);
  const size_t first = std::min(text.find('\n'), text.size());
  WordVocabulary vocabulary = parse_vocabulary(
      std::string_view(text).substr(std::min(first + 1, text.size())), shown_path(path), 2);
  vocabulary.left_out = count_in(std::string_view(text).substr(0, first));
  if (vocabulary.words.size() >= 2) return vocabulary;
  throw Error(ErrorCode::kUsage,
              "the texts have " + counted(vocabulary.size(), "word") + " that occur " +
                  counted(rules.min_count, "time") + " or more",
              texts.name, "use more data, or lower data.min_count");
}

std::shared_ptr<const TokenSequence> word_numbers(const WordTexts& texts,
                                                  const WordVocabulary& vocabulary) {
  const std::string path = cache_path(texts, hash_text(text_of(vocabulary)), ".bin");
  const text::TokenWidth width = text::token_width_for(vocabulary.words.size() + 1);
  make_once(path, "which numbers the words of " + texts.name,
            [&](MakerLock&) { make_numbers_file(path, texts, vocabulary, width); });
  auto numbers = std::make_shared<TokenFiles>(std::vector<std::string>{path}, width);
  if (numbers->size() > 0) return numbers;
  throw Error(ErrorCode::kUsage, "no line of the texts has two words of the vocabulary", texts.name,
              "use more data, or lower data.min_count");
}

std::string text_of(const WordVocabulary& vocabulary) {
  std::string text;
  for (size_t i = 0; i < vocabulary.words.size(); ++i) {
    text += vocabulary.words[i] + "\t" + std::to_string(vocabulary.counts[i]) + "\n";
  }
  return text;
}

WordVocabulary read_vocabulary(const std::string& path) {
  WordVocabulary vocabulary = parse_vocabulary(read_file(path), shown_path(path), 1);
  if (vocabulary.words.size() >= 2) return vocabulary;
  throw Error(ErrorCode::kUsage, "the file has fewer than two words", shown_path(path),
              "name a file of words, or remove it");
}

}  // namespace fleet::data
