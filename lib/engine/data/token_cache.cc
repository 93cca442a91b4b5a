#include "data/token_cache.h"

#include <algorithm>

#include "base/cache_file.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/maker_lock.h"
#include "text/tokenize_corpus.h"

namespace fleet::data {
namespace {

constexpr int kVersion = 1;  // increase it to invalidate all caches
constexpr double kProgressSeconds = 10;

uint64_t key_of(const TokenCacheRequest& request) {
  uint64_t hash = hash_bytes(&request.tokenizer_hash, sizeof request.tokenizer_hash, kVersion);
  hash = hash_text(request.text_key, hash);
  hash = hash_text(request.parse_special ? "special" : "plain", hash);
  hash = hash_text(request.mark ? std::to_string(*request.mark) : "none", hash);
  if (request.sentences != text::SentenceForm::kNone) {
    hash = hash_text(request.sentences == text::SentenceForm::kLines ? "line" : "sentence", hash);
  }
  for (const text::CorpusFile& file : request.files) {
    hash = hash_text(file.json_lines ? "lines" : "text", hash);
    hash = hash_file_state(file.path, file.modified, hash);
  }
  return hash;
}

std::string path_of(const TokenCacheRequest& request) {
  const std::string name =
      format_printf("tokens-%016llx.bin", static_cast<unsigned long long>(key_of(request)));
  const std::string path = request.folder.empty() ? cache_file(name) : request.folder + "/" + name;
  if (!path.empty()) return path;
  throw Error(ErrorCode::kUsage, "no folder for the tokens is known: HOME is not set",
              "data.token_cache", "set it to a folder");
}

void make_tokens(const std::string& path, const TokenCacheRequest& request,
                 const text::Tokenizer& tokenizer, MakerLock& lock) {
  spdlog::info("tokenizing {} into {}", request.name, shown_path(path));
  const double begun = monotonic_seconds();
  double said = begun;
  const auto progress = [&](const text::TokenizeProgress& at) {
    const double now = monotonic_seconds();
    if (now - said < kProgressSeconds) return;
    said = now;
    // Parts of an earlier, interrupted run cost no time.
    const double speed = static_cast<double>(at.bytes - at.found) / (now - begun);
    const double left = static_cast<double>(at.total - at.bytes) / std::max(speed, 1.0);
    const std::string text =
        format_printf("%.0f %% of %s, %.1f MB/s, ", 100.0 * double(at.bytes) / double(at.total),
                      mebibytes(at.total).c_str(), speed / 1e6) +
        format_duration(left) + " left";
    lock.publish(text);
    spdlog::info("tokenizing {}: {}", request.name, text);
  };
  text::TokenizeOptions options{.tokenizer = request.tokenizer_path,
                                .output = path,
                                .width = cached_width(tokenizer, request.sentences),
                                .text_key = request.text_key,
                                .eos = text::EosPlace::kNone,
                                .parse_special = request.parse_special,
                                .sentences = request.sentences,
                                .skip_advice =
                                    "tokenize the texts with `fleetrun tokenize "
                                    "--on_damaged skip` and use the source tokens",
                                .threads = static_cast<int>(request.threads)};
  if (request.sentences != text::SentenceForm::kNone) options.skip_advice = "leave the file out";
  if (request.mark) {
    options.eos = text::EosPlace::kAppend;
    options.eos_token = tokenizer.token(*request.mark).value_or("");
  }
  const text::TokenizeResult made = text::tokenize_corpus(request.files, options, progress);
  spdlog::info("tokenized {}: {} documents, {} tokens, {}", request.name, made.documents,
               made.tokens, format_duration(monotonic_seconds() - begun));
}

}  // namespace

text::TokenWidth cached_width(const text::Tokenizer& tokenizer, text::SentenceForm sentences) {
  const size_t vocabulary = tokenizer.vocabulary_size();
  if (sentences == text::SentenceForm::kNone) return text::token_width_for(vocabulary);
  return text::token_width_for(text::sentence_marks(vocabulary).vocabulary());
}

std::string cached_tokens(const TokenCacheRequest& request, const text::Tokenizer& tokenizer) {
  const std::string path = path_of(request);
  make_once(path, "which tokenizes " + request.name,
            [&](MakerLock& lock) { make_tokens(path, request, tokenizer, lock); });
  return path;
}

}  // namespace fleet::data
