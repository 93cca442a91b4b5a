#include "text/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>

#include "base/error.h"
#include "base/terminal_text.h"
#include "text/text_splitter.h"

namespace fleet::text {
namespace {

constexpr int32_t kNoList = -1;

uint64_t pair_key(uint32_t first, uint32_t second) { return uint64_t{first} << 32 | second; }

// Counts of pairs, by open addressing.
class PairTable {
 public:
  struct Entry {
    uint64_t pair = UINT64_MAX;  // no pair has this key: ids are smaller
    int64_t count = 0;
    int32_t list = kNoList;  // words that got this pair since the last merge
  };
  // Valid until the next call.
  Entry& at(uint64_t pair) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Entry& entry = slots_[find(pair)];
    if (entry.pair == UINT64_MAX) {
      entry.pair = pair;
      ++size_;
    }
    return entry;
  }

 private:
  size_t find(uint64_t pair) const {
    const size_t mask = slots_.size() - 1;
    size_t at = (pair * 0x9E3779B97F4A7C15u) >> 20 & mask;
    while (slots_[at].pair != pair && slots_[at].pair != UINT64_MAX) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Entry> old(std::max<size_t>(4096, 2 * slots_.size()));
    old.swap(slots_);
    for (const Entry& entry : old) {
      if (entry.pair != UINT64_MAX) slots_[find(entry.pair)] = entry;
    }
  }

  std::vector<Entry> slots_;
  size_t size_ = 0;
};

// A pair that waits to become a token. Its count may be out of date.
struct Candidate {
  int64_t count = 0;
  uint64_t pair = 0;
  uint32_t list = 0;  // the words that may have it

  bool operator<(const Candidate& other) const {  // "is taken later"
    if (count != other.count) return count < other.count;
    if (pair != other.pair) return pair > other.pair;
    return list > other.list;
  }
};

class BpeTrainer {
 public:
  BpeTrainer(std::span<const WordCount> words, const BpeTrainerSettings& settings)
      : settings_(settings) {
    for (const std::string& token : settings.special_tokens) add_token(token);
    for (const char32_t code : alphabet()) add_token(character(code));
    if (settings.vocabulary_size < result_.tokens.size()) refuse_size();
    take_words(words);
    count_pairs();
  }

  TrainedBpe run(const std::function<void(size_t)>& progress) {
    while (result_.tokens.size() < settings_.vocabulary_size && !queue_.empty()) {
      Candidate top = queue_.top();
      queue_.pop();
      const int64_t now = pairs_.at(top.pair).count;
      if (top.count != now) {
        top.count = now;
        queue_.push(top);
        continue;
      }
      if (top.count < 1 || static_cast<uint64_t>(top.count) < settings_.min_frequency) break;
      merge(top);
      if (progress && merges_.size() % 64 == 0) progress(result_.tokens.size());
    }
    keep_last_of_equal_merges();
    return std::move(result_);
  }

 private:
  static std::string character(char32_t code) {
    // Code points of the alphabet are below 0x800.
    if (code < 0x80) return {static_cast<char>(code)};
    return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  }
  static std::vector<char32_t> alphabet() {
    std::vector<char32_t> codes;
    for (int byte = 0; byte < 256; ++byte) {
      codes.push_back(byte_level_code_point(static_cast<unsigned char>(byte)));
    }
    std::sort(codes.begin(), codes.end());
    return codes;
  }

  // The id of a token: a new one if no token has this text.
  uint32_t add_token(const std::string& token) {
    const auto [found, is_new] = ids_.emplace(token, static_cast<uint32_t>(result_.tokens.size()));
    if (is_new) result_.tokens.push_back(token);
    return found->second;
  }

  [[noreturn]] void refuse_size() const {
    throw Error(ErrorCode::kUsage,
                "a vocabulary of " + std::to_string(settings_.vocabulary_size) +
                    " tokens has no room for 256 bytes and the special tokens",
                "--vocabulary_size", "give at least " + std::to_string(result_.tokens.size()));
  }

  void take_words(std::span<const WordCount> words) {
    std::array<uint32_t, 256> id_of_byte;
    for (size_t byte = 0; byte < 256; ++byte) {
      const char32_t code = byte_level_code_point(static_cast<unsigned char>(byte));
      id_of_byte[byte] = ids_.at(character(code));
    }
    size_t bytes = 0;
    for (const WordCount& word : words) bytes += word.word.size();
    symbols_.reserve(bytes);
    for (const WordCount& word : words) {
      if (word.word.size() < 2) continue;  // it has no pair
      words_.push_back({.begin = symbols_.size(),
                        .size = static_cast<uint32_t>(word.word.size()),
                        .count = static_cast<int64_t>(word.count)});
      for (const unsigned char byte : word.word) symbols_.push_back(id_of_byte[byte]);
    }
  }

  void count_pairs() {
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint32_t* symbols = &symbols_[words_[i].begin];
      for (uint32_t at = 0; at + 1 < words_[i].size; ++at) {
        change(pair_key(symbols[at], symbols[at + 1]), words_[i].count, static_cast<uint32_t>(i));
      }
    }
    queue_new_pairs();
  }

  // Adds to the count of a pair. Words are visited one after the other: the last of a list tells
  // whether it has the word already.
  void change(uint64_t pair, int64_t count, uint32_t word) {
    PairTable::Entry& entry = pairs_.at(pair);
    entry.count += count;
    if (count < 0) return;
    if (entry.list == kNoList) {
      entry.list = static_cast<int32_t>(lists_.size());
      lists_.emplace_back();
      new_pairs_.push_back(pair);
    }
    std::vector<uint32_t>& list = lists_[static_cast<size_t>(entry.list)];
    if (list.empty() || list.back() != word) list.push_back(word);
  }

  void queue_new_pairs() {
    for (const uint64_t pair : new_pairs_) {
      PairTable::Entry& entry = pairs_.at(pair);
      const auto list = static_cast<uint32_t>(entry.list);
      entry.list = kNoList;
      lists_[list].shrink_to_fit();
      if (entry.count > 0) {
        queue_.push({.count = entry.count, .pair = pair, .list = list});
      } else {
        std::vector<uint32_t>().swap(lists_[list]);
      }
    }
    new_pairs_.clear();
  }

  // The pair becomes a token in all words that have it. Its own count stays as it is: a later merge
  // may make one of its tokens from another pair, and Hugging Face's count then includes the words
  // of this merge.
  void merge(const Candidate& candidate) {
    const auto first = static_cast<uint32_t>(candidate.pair >> 32);
    const auto second = static_cast<uint32_t>(candidate.pair);
    const uint32_t token = add_token(result_.tokens[first] + result_.tokens[second]);
    merges_.push_back(candidate.pair);
    std::vector<uint32_t> list;
    list.swap(lists_[candidate.list]);
    for (const uint32_t word : list) merge_in_word(word, first, second, token);
    queue_new_pairs();
  }

  void merge_in_word(uint32_t index, uint32_t first, uint32_t second, uint32_t token) {
    Word& word = words_[index];
    uint32_t* symbols = &symbols_[word.begin];
    uint32_t to = 0;
    for (uint32_t from = 0; from < word.size; ++from) {
      const bool found =
          symbols[from] == first && from + 1 < word.size && symbols[from + 1] == second;
      if (!found) {
        symbols[to++] = symbols[from];
        continue;
      }
      if (to > 0) {
        change(pair_key(symbols[to - 1], first), -word.count, index);
        change(pair_key(symbols[to - 1], token), word.count, index);
      }
      if (from + 2 < word.size) {
        change(pair_key(second, symbols[from + 2]), -word.count, index);
        change(pair_key(token, symbols[from + 2]), word.count, index);
      }
      symbols[to++] = token;
      ++from;
    }
    word.size = to;
  }

  // A pair may have been merged twice, if one of its tokens was made in two ways. Its last rank
  // counts.
  void keep_last_of_equal_merges() {
    std::unordered_map<uint64_t, size_t> last;
    for (size_t i = 0; i < merges_.size(); ++i) last[merges_[i]] = i;
    for (size_t i = 0; i < merges_.size(); ++i) {
      if (last[merges_[i]] != i) continue;
      result_.merges.emplace_back(static_cast<uint32_t>(merges_[i] >> 32),
                                  static_cast<uint32_t>(merges_[i]));
    }
  }

  struct Word {
    size_t begin = 0;  // in symbols_
    uint32_t size = 0;
    int64_t count = 0;
  };

  const BpeTrainerSettings& settings_;
  TrainedBpe result_;
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<uint32_t> symbols_;
  std::vector<Word> words_;
  PairTable pairs_;
  std::vector<std::vector<uint32_t>> lists_;
  std::vector<uint64_t> new_pairs_, merges_;
  std::priority_queue<Candidate> queue_;
};

void check_special_tokens(const std::vector<std::string>& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool again = std::find(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(i),
                                 tokens[i]) != tokens.begin() + static_cast<ptrdiff_t>(i);
    if (!tokens[i].empty() && !again) continue;
    throw Error(ErrorCode::kUsage,
                again ? "special token '" + shown_name(tokens[i]) + "' is given twice"
                      : std::string("a special token is empty"),
                "--special_token", "give each once");
  }
}

void check_surrounding(const BpeTrainerSettings& settings) {
  if (settings.cls_token.empty() && settings.sep_token.empty()) return;
  for (const auto& [option, token] : {std::pair{"--cls_token", settings.cls_token},
                                      std::pair{"--sep_token", settings.sep_token}}) {
    if (std::ranges::find(settings.special_tokens, token) != settings.special_tokens.end()) {
      continue;
    }
    throw Error(ErrorCode::kUsage,
                token.empty() ? std::string("is missing: rows begin with one token, and texts end "
                                            "with another")
                              : "'" + shown_name(token) + "' is not a special token",
                option, "give --cls_token, --sep_token, and both as --special_token");
  }
}

}  // namespace

TrainedBpe train_bpe(std::span<const WordCount> words, const BpeTrainerSettings& settings,
                     const std::function<void(size_t)>& progress) {
  check_special_tokens(settings.special_tokens);
  check_surrounding(settings);
  return BpeTrainer(words, settings).run(progress);
}

}  // namespace fleet::text
