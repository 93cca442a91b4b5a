// Text to token ids and back, as Hugging Face's tokenizers and OpenAI's tiktoken do it.
//
// Formats: tokenizer.json (https://huggingface.co/docs/tokenizers), and tiktoken's rank files,
// whose lines are a token in base64 and its rank. What a file asks for is done, or refused by its
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/encoding.h"

namespace fleet {
class Json;
}

namespace fleet::text {

class TextSplitter;

// A token that is found in the text before the model sees it.
struct AddedToken {
  std::string content;
  uint32_t id = 0;
  bool special = false;      // decode() can leave it out
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // is looked for in the normalized text, not in the raw one
};

// The settings that a rank file lacks. A file of GPT-2, cl100k, o200k, Llama-3 or Qwen2 needs
// neither: it is known by its number of ranks.
struct RankFileSettings {
  std::string pattern;                   // the regular expression that splits the text
  std::vector<AddedToken> added_tokens;  // with their ids
};

// The file that Tokenizer::load() reads: a folder's tokenizer.json, or its vocab.txt if it
// has only that; else the path itself.
std::string tokenizer_path(const std::string& path);

// All const member functions may be called by several threads at once. Text is UTF-8; bytes that
// are not become U+FFFD.
class Tokenizer {
 public:
  // Either format; told apart by the content. Also a folder with tokenizer.json or, as BERT's old
  // ones, with vocab.txt; or such a vocab.txt (tokenizer_config.json next to it is read). kUsage
  // for a file that is neither or is damaged, kUnsupported for a request that this class cannot
  // fulfil, kNotFound, kIo.
  static Tokenizer load(const std::string& path);
  // The content of a tokenizer.json. where: what messages call it.
  static Tokenizer from_json(std::string_view json, const std::string& where);
  static Tokenizer from_ranks(std::string_view content, const RankFileSettings& settings,
                              const std::string& where);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // add_special_tokens: what the post-processor adds, such as [CLS] and [SEP]. Truncates and pads
  // if the file says so. Special tokens inside the text are recognized.
  std::vector<uint32_t> encode(std::string_view text, bool add_special_tokens) const;
  // One text, or two. Truncates as `options` or else the file say, with the results of Hugging
  // Face's tokenizers. kUsage if the truncation cannot make it short enough. Does not pad.
  Encoding encode(std::string_view text, const EncodeOptions& options) const;
  Encoding encode(std::string_view first, std::string_view second,
                  const EncodeOptions& options) const;
  // The post-processor's result for texts that were encoded without special tokens, or of parts
  // of them. second: nullptr for none.
  Encoding joined(const Encoding& first, const Encoding* second) const;
  // How many tokens the post-processor adds to one text, or to two.
  size_t special_tokens(bool is_pair) const;
  // Without special tokens of the post-processor, truncation and padding: for corpora. Appends.
  void encode_ordinary(std::string_view text, std::vector<uint32_t>& ids) const;
  // As encode_ordinary(), but the text of special tokens in it is ordinary text.
  void encode_as_text(std::string_view text, std::vector<uint32_t>& ids) const;

  // kUsage for an id that is not in the vocabulary. The text may be cut inside a character: such
  // bytes become U+FFFD.
  std::string decode(std::span<const uint32_t> ids, bool skip_special_tokens) const;

  // With the added tokens: one more than the largest id.
  size_t vocabulary_size() const;
  // The id of a token as the file writes it ("Ġthe"), also of an added one.
  std::optional<uint32_t> token_id(std::string_view token) const;
  // As the file writes it; nullopt for an id without a token.
  std::optional<std::string> token(uint32_t id) const;
  // In the order of their ids.
  const std::vector<AddedToken>& added_tokens() const;

  // The normalizer and the pre-tokenizer, which make the pieces.
  const TextSplitter& splitter() const;

  // Not while another thread uses this tokenizer.
  void disable_truncation();
  void disable_padding();

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  static Tokenizer from_file(const Json& file, const std::string& where);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fleet::text
