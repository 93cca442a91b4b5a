#include "text/rank_file.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "text/vocabulary.h"

namespace fleet::text {
namespace {

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool decode_base64(std::string_view text, std::string& bytes) {
  bytes.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const int digit = base64_digit(c);
    if (digit < 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count & 0xFF));
    }
  }
  return !bytes.empty();
}

bool parse_rank_line(std::string_view line, std::string& token, long long* rank) {
  const size_t space = line.find(' ');
  return space != std::string_view::npos && decode_base64(line.substr(0, space), token) &&
         parse_int(line.substr(space + 1), rank) && *rank >= 0 && *rank < kMostIds;
}

// The expressions of tiktoken_ext/openai_public.py and Llama-3's tokenizer.py. Their possessive
// quantifiers are greedy here, which matches the same: what follows one cannot match what it took.
constexpr const char* kGpt2 =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

void add_special(RankFileSettings& settings, const std::string& content, size_t id) {
  AddedToken token;
  token.content = content;
  token.id = static_cast<uint32_t>(id);
  token.special = true;
  settings.added_tokens.push_back(std::move(token));
}

// Of llama_models/llama3/tokenizer.py: 256 special tokens.
void add_llama3(RankFileSettings& settings, size_t ranks) {
  static constexpr const char* kNamed[] = {"<|begin_of_text|>",
                                           "<|end_of_text|>",
                                           "<|reserved_special_token_0|>",
                                           "<|reserved_special_token_1|>",
                                           "<|finetune_right_pad_id|>",
                                           "<|step_id|>",
                                           "<|start_header_id|>",
                                           "<|end_header_id|>",
                                           "<|eom_id|>",
                                           "<|eot_id|>",
                                           "<|python_tag|>"};
  size_t id = ranks;
  for (const char* name : kNamed) add_special(settings, name, id++);
  for (int number = 2; id < ranks + 256; ++number) {
    add_special(settings, "<|reserved_special_token_" + std::to_string(number) + "|>", id++);
  }
}

}  // namespace

bool is_rank_file(std::string_view content) {
  std::string token;
  long long rank;
  return parse_rank_line(trim(content.substr(0, content.find('\n'))), token, &rank);
}

std::vector<std::string> read_ranks(std::string_view content, const std::string& where) {
  std::vector<std::string> tokens;
  size_t number = 0;
  for (std::string_view line : lines_of(content)) {
    ++number;
    line = trim(line);
    if (line.empty()) continue;
    std::string token;
    long long rank;
    if (!parse_rank_line(line, token, &rank)) {
      throw Error(ErrorCode::kUsage, "the line is not a token in base64 and its rank",
                  where + ":" + std::to_string(number));
    }
    const auto index = static_cast<size_t>(rank);
    if (index >= tokens.size()) tokens.resize(index + 1);
    if (!tokens[index].empty()) {
      throw Error(ErrorCode::kUsage, "two tokens have the rank " + std::to_string(rank),
                  where + ":" + std::to_string(number));
    }
    tokens[index] = std::move(token);
  }
  return tokens;
}

std::optional<RankFileSettings> known_settings(size_t ranks) {
  RankFileSettings settings;
  switch (ranks) {
    case 50256:
      settings.pattern = kGpt2;
      add_special(settings, "<|endoftext|>", 50256);
      return settings;
    case 100256:
      settings.pattern = kCl100k;
      add_special(settings, "<|endoftext|>", 100257);
      add_special(settings, "<|fim_prefix|>", 100258);
      add_special(settings, "<|fim_middle|>", 100259);
      add_special(settings, "<|fim_suffix|>", 100260);
      add_special(settings, "<|endofprompt|>", 100276);
      return settings;
    case 128000:
      settings.pattern = kCl100k;
      add_llama3(settings, ranks);
      return settings;
    case 151643:
      settings.pattern = kQwen2;
      add_special(settings, "<|endoftext|>", 151643);
      add_special(settings, "<|im_start|>", 151644);
      add_special(settings, "<|im_end|>", 151645);
      return settings;
    case 199998:
      settings.pattern = kO200k;
      add_special(settings, "<|endoftext|>", 199999);
      add_special(settings, "<|endofprompt|>", 200018);
      return settings;
    default:
      return std::nullopt;
  }
}

}  // namespace fleet::text
