#include "train/generate.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "models/text/language_models.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "train/language_runner.h"
#include "train/resume_checks.h"

namespace fleet {
namespace {

std::string tokenizer_file(const Job& job, const std::string& given) {
  if (!given.empty()) return given;
  if (job.data.has("tokenizer") && !job.data.text("tokenizer").empty()) {
    return job.data.text("tokenizer");
  }
  const auto source = language_source(job.model_name, job.model);
  if (source && !source->folder.empty()) {
    const std::string file = source->folder + "/tokenizer.json";
    if (std::filesystem::exists(file)) return file;
  }
  throw Error(ErrorCode::kUsage, "the job names no tokenizer", "--tokenizer",
              "give the tokenizer.json with which its data were tokenized");
}

text::Tokenizer load_tokenizer(const std::string& file) {
  text::Tokenizer tokenizer = text::Tokenizer::load(file);
  tokenizer.disable_truncation();
  tokenizer.disable_padding();
  return tokenizer;
}

LanguageModel generating_model(const Job& job) {
  const auto source = language_source(job.model_name, job.model);
  if (!source) {
    throw Error(ErrorCode::kUsage, "'" + job.model_name + "' is not a language model", "model.name",
                "give a job file that trains one, such as config/llama_135m.json");
  }
  LanguageModel model = language_model_of(*source);
  if (!model.encoder) return model;
  throw Error(ErrorCode::kUsage, "a " + model.family + " does not predict the next token",
              source->where, "give a job file of a gpt2, llama, mistral, qwen2 or qwen3");
}

// The longest row: that of training, beyond which a model has learned nothing.
int64_t longest_row(const Job& job, int64_t positions) {
  if (!job.data.has("sequence_length")) return positions;
  return std::min(positions, job.data.integer("sequence_length"));
}

// Models pad their vocabulary, mostly to a multiple of 128. A few published ones add up to 2%.
void check_vocabulary(int64_t tokenizer, int64_t model, const std::string& file) {
  constexpr int64_t kMultiple = 128;
  constexpr double kPadding = 0.02;
  const std::string sizes =
      "the tokenizer has " + counted(tokenizer, "token") + ", the model " + std::to_string(model);
  if (tokenizer > model) {
    throw Error(ErrorCode::kUsage, sizes, file,
                "give the tokenizer.json with which its data were tokenized");
  }
  const auto unused = static_cast<double>(model - tokenizer);
  if (model - tokenizer >= kMultiple && unused > kPadding * static_cast<double>(model)) {
    spdlog::warn("{}: {}: its data may have been tokenized with another tokenizer", file, sizes);
  }
}

void warn_of_tokenizer(const data::TokenizerIdentity& trained, const std::string& file) {
  const std::string other =
      tokenizer_difference(trained, {shown_path(file), hash_file(file).value_or(0)});
  if (!other.empty()) spdlog::warn("the model {}", other);
}

void warn_of_prompt(const std::string& prompt, int64_t tokens, int64_t longest) {
  if (!text::is_valid_utf8(prompt)) {
    spdlog::warn("the prompt is not UTF-8; its damaged bytes are replaced");
  }
  if (tokens > longest) {
    spdlog::warn("the prompt has {} tokens, of which the model reads only the last {}", tokens,
                 longest);
  }
}

bool is_special(const text::Tokenizer& tokenizer, uint32_t id) {
  return std::ranges::any_of(tokenizer.added_tokens(), [&](const text::AddedToken& token) {
    return token.special && token.id == id;
  });
}

// Passes on a growing text, without a character whose bytes are not all there yet.
class TextStream {
 public:
  explicit TextStream(const std::function<void(std::string_view)>& write) : write_(write) {}

  // text: the whole text so far.
  void update(std::string_view text, bool ends) {
    constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
    while (!ends && text.ends_with(kReplacement)) text.remove_suffix(kReplacement.size());
    if (text.size() <= written_) return;
    write_(text.substr(written_));
    written_ = text.size();
  }

 private:
  const std::function<void(std::string_view)>& write_;
  size_t written_ = 0;
};

}  // namespace

GenerateResult generate(const Job& job, Device& device, const GenerateOptions& options,
                        const std::function<void(std::string_view)>& write) {
  const LanguageModel model = generating_model(job);
  const int64_t longest = longest_row(job, model.positions);
  const std::string file = tokenizer_file(job, options.tokenizer);
  const text::Tokenizer tokenizer = load_tokenizer(file);
  const auto vocabulary = static_cast<int64_t>(tokenizer.vocabulary_size());
  check_vocabulary(vocabulary, model.vocabulary, file);
  text::Sampler sampler(options.sampling);
  LanguageRunner runner(job, device, longest);

  std::vector<uint32_t> tokens;
  tokenizer.encode_ordinary(options.prompt, tokens);
  if (tokens.empty()) {
    throw Error(ErrorCode::kUsage, "there is no text to continue", "--prompt",
                "give a word, or the special token that documents of the model begin with");
  }
  GenerateResult result{.prompt_tokens = std::ssize(tokens)};
  warn_of_prompt(options.prompt, result.prompt_tokens, longest);
  runner.logits(tokens);  // builds and loads, before the first word appears
  warn_of_tokenizer(runner.tokenizer(), file);
  TextStream stream(write);
  stream.update(tokenizer.decode(tokens, true), false);
  const auto begun = std::chrono::steady_clock::now();
  while (result.tokens < options.tokens) {
    std::span<const float> logits = runner.logits(tokens);
    // Models pad their vocabulary: the tokenizer has no text for the last tokens.
    if (std::ssize(logits) > vocabulary) logits = logits.first(vocabulary);
    const auto token = static_cast<uint32_t>(sampler.next(logits));
    if (is_special(tokenizer, token)) break;
    tokens.push_back(token);
    ++result.tokens;
    stream.update(tokenizer.decode(tokens, true), false);
  }
  stream.update(tokenizer.decode(tokens, true), true);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return result;
}

}  // namespace fleet
