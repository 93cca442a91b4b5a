// Trains a byte-level BPE vocabulary: from counted words, the pair of tokens that occurs most often
// becomes a token, again and again (Sennrich et al., https://arxiv.org/abs/1508.07909).
//
// The result equals that of Hugging Face's BpeTrainer (tokenizers 0.23) byte for byte, with
// initial_alphabet=ByteLevel.alphabet(): special tokens first, then the 256 bytes in the order of
// their code points, then merges. Equal counts: the pair with the smaller ids. Counts are 64-bit
// here; a corpus with 2^31 occurrences of one pair overflows theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "text/word_counts.h"

namespace fleet::text {

struct BpeTrainerSettings {
  size_t vocabulary_size = 32768;  // special tokens, 256 bytes and merges; fewer if words run out
  uint64_t min_frequency = 2;      // lowest count of a pair that becomes a token
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
  // Special tokens around each text (bert_template()). Both or none.
  std::string cls_token = {}, sep_token = {};
};

struct TrainedBpe {
  std::vector<std::string> tokens;                    // by id, as vocabularies write them: "Ġthe"
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // by rank
};

// words: raw bytes, each word once. progress: called after some merges with the number of tokens.
// kUsage for a special token that is empty or given twice, for one of the tokens around a text that
// is missing or not special, and for a vocabulary without room for special tokens and bytes.
TrainedBpe train_bpe(std::span<const WordCount> words, const BpeTrainerSettings& settings,
                     const std::function<void(size_t tokens)>& progress = {});

// How texts are split before training and encoding. Known: gpt2, llama3, qwen2.
struct SplitStyle {
  std::string normalizer, pre_tokenizer;  // sections of a tokenizer.json
};
// kUsage naming the known styles.
SplitStyle split_style(const std::string& name);
std::vector<std::string> split_style_names();

// The tokenizer.json, as Tokenizer.save() of Hugging Face writes it.
std::string tokenizer_json(const TrainedBpe& bpe, const BpeTrainerSettings& settings,
                           const SplitStyle& style);

}  // namespace fleet::text
