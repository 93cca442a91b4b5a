#include "text/tokenize_corpus.h"

#include <filesystem>

#include "base/error.h"
#include "base/file_status.h"
#include "base/folder_lock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/number_text.h"
#include "base/text.h"
#include "text/output_file.h"
#include "text/part_workers.h"
#include "text/tokenized_part.h"
#include "text/tokenizer.h"

namespace fleet::text {
namespace {

namespace fs = std::filesystem;

constexpr int kPartsVersion = 1;
constexpr size_t kCopyIds = 1 << 16;

// Names, in the known families, of the token between documents.
constexpr const char* kEosTokens[] = {"<|endoftext|>",
                                      "<|end_of_text|>",
                                      "<\xEF\xBD\x9C"
                                      "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
                                      "<|eot_id|>",
                                      "</s>",
                                      "<eos>",
                                      "[SEP]"};

uint32_t find_eos(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  if (options.eos == EosPlace::kNone) return 0;
  if (!options.eos_token.empty()) {
    if (const auto id = tokenizer.token_id(options.eos_token)) return *id;
    throw Error(ErrorCode::kUsage, "the tokenizer has no token '" + options.eos_token + "'",
                options.tokenizer, "give another --eos_token");
  }
  for (const char* token : kEosTokens) {
    if (const auto id = tokenizer.token_id(token)) return *id;
  }
  throw Error(ErrorCode::kUsage, "the tokenizer has none of the usual end-of-text tokens",
              options.tokenizer, "name it with --eos_token, or give --eos none");
}

TokenWidth choose_width(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  const TokenWidth fits = token_width_for(tokenizer.vocabulary_size());
  if (!options.width) return fits;
  if (*options.width == TokenWidth::kUint16 && fits == TokenWidth::kUint32) {
    throw Error(ErrorCode::kUsage,
                "a vocabulary of " + std::to_string(tokenizer.vocabulary_size()) +
                    " tokens does not fit into uint16",
                options.tokenizer, "leave out --type, or give uint32");
  }
  return *options.width;
}

// Everything that the tokens of a part depend on, besides its file.
std::string manifest_text(const TokenizeOptions& options, uint32_t eos, TokenWidth width) {
  const uint64_t tokenizer = hash_text(read_file(options.tokenizer));
  const Json json = {
      {"version", kPartsVersion},
      {"tokenizer", format_printf("%016llx", static_cast<unsigned long long>(tokenizer))},
      {"text_key", options.text_key},
      {"eos", static_cast<int>(options.eos)},
      {"eos_id", uint64_t{eos}},
      {"parse_special", options.parse_special},
      {"validation", options.validation},
      {"seed", options.seed},
      {"skip_damaged", options.skip_damaged},
      {"width", static_cast<int>(width)},
      {"part_bytes", options.part_bytes}};
  return json.dump_lossy(1) + "\n";
}

// The folder of parts: new, or that of an earlier run of the same call.
UniqueFd open_parts(const std::string& folder, const std::string& manifest) {
  make_directories(folder);
  UniqueFd held = lock_folder(folder, "fleetrun tokenize");
  const std::string path = folder + "/manifest.json";
  if (!path_exists(path)) {
    write_file_atomically(path, manifest);
  } else if (read_file(path) != manifest) {
    throw Error(ErrorCode::kUsage,
                "the folder holds parts that another tokenizer or other options have made", folder,
                "remove it to begin again, or give another output");
  }
  return held;
}

class CorpusTokenizer {
 public:
  CorpusTokenizer(std::span<const CorpusFile> files, const TokenizeOptions& options)
      : files_(files),
        options_(options),
        parts_(corpus_parts(files, options.part_bytes)),
        tokenizer_(Tokenizer::load(options.tokenizer)),
        eos_(find_eos(tokenizer_, options)),
        width_(choose_width(tokenizer_, options)),
        folder_(options.output + ".parts"),
        summaries_(parts_.size()) {
    for (const CorpusFile& file : files) counters_total_ += file.bytes;
  }

  TokenizeResult run(const std::function<void(const TokenizeProgress&)>& progress) {
    const UniqueFd held = open_parts(folder_, manifest_text(options_, eos_, width_));
    const auto make_worker = [&] {
      const auto encoder =
          std::make_shared<PartEncoder>(tokenizer_, options_, eos_, width_, &counters_);
      return [this, encoder](size_t part) { make_part(part, *encoder); };
    };
    PartWorkers::run(parts_.size(), options_.threads, make_worker, [&] {
      if (progress) progress(state());
    });
    if (progress) progress(state());
    const TokenizeResult result = sum();
    check_result(result);
    if (options_.validation > 0) join(true);
    join(false);
    fs::remove_all(folder_);
    return result;
  }

 private:
  void make_part(size_t number, PartEncoder& encoder) {
    const CorpusPart& part = parts_[number];
    const CorpusFile& file = files_[part.file];
    const PartFiles files(folder_, number);
    if (const auto found = files.find(file, part, width_)) {
      summaries_[number] = *found;
      ++found_parts_;
      counters_.found += part.end - part.begin;
      counters_.bytes += part.end - part.begin;
      counters_.tokens += found->tokens + found->validation_tokens;
      counters_.damaged += found->damaged;
      return;
    }
    summaries_[number] = encoder.encode(file, part, files);
  }

  TokenizeProgress state() const {
    return {.bytes = counters_.bytes,
            .total = counters_total_,
            .found = counters_.found,
            .tokens = counters_.tokens,
            .damaged = counters_.damaged};
  }

  TokenizeResult sum() const {
    TokenizeResult result{
        .parts = static_cast<int64_t>(parts_.size()), .found_parts = found_parts_, .width = width_};
    for (const PartSummary& part : summaries_) {
      result.documents += part.documents;
      result.tokens += part.tokens;
      result.validation_tokens += part.validation_tokens;
      result.damaged += part.damaged;
    }
    return result;
  }

  // Another number would repair these, so the parts are of no use.
  void check_result(const TokenizeResult& result) const {
    const bool no_validation = options_.validation > 0 && result.validation_tokens == 0;
    if (result.tokens > 0 && !no_validation) return;
    fs::remove_all(folder_);
    const std::string documents = std::to_string(result.documents) + " documents";
    if (result.tokens == 0 && result.validation_tokens == 0) {
      throw Error(ErrorCode::kUsage, "the corpus has no text", files_[0].path,
                  "give files with texts");
    }
    throw Error(
        ErrorCode::kUsage,
        "of " + documents + " none is left for " + (no_validation ? "the validation" : "training"),
        "--validation",
        std::string("give a ") + (no_validation ? "larger" : "smaller") +
            " share, or another --seed");
  }

  void join(bool validation) {
    const std::string path = validation ? validation_path(options_.output) : options_.output;
    TokenWriter writer(path, options_.format, width_);
    std::vector<uint32_t> ids;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const int64_t count = validation ? summaries_[i].validation_tokens : summaries_[i].tokens;
      if (count == 0) continue;
      const TokenFile part(PartFiles(folder_, i).tokens(validation), width_);
      for (int64_t at = 0; at < count;) {
        ids.resize(static_cast<size_t>(std::min<int64_t>(kCopyIds, count - at)));
        part.copy(at, std::span(ids));
        writer.add(ids);
        at += static_cast<int64_t>(ids.size());
      }
    }
    writer.finish();
  }

  const std::span<const CorpusFile> files_;
  const TokenizeOptions& options_;
  const std::vector<CorpusPart> parts_;
  const Tokenizer tokenizer_;
  const uint32_t eos_;
  const TokenWidth width_;
  const std::string folder_;
  int64_t counters_total_ = 0;
  PartCounters counters_;
  std::vector<PartSummary> summaries_;  // each written by the thread that has the part
  std::atomic<int64_t> found_parts_ = 0;
};

}  // namespace

std::string validation_path(const std::string& output) {
  const fs::path path(output);
  std::string name = path.filename().string();
  const size_t train = name.find("train");
  if (train != std::string::npos) {
    name.replace(train, 5, "val");
  } else {
    name = path.stem().string() + "_val" + path.extension().string();
  }
  return (path.parent_path() / name).string();
}

TokenizeResult tokenize_corpus(std::span<const CorpusFile> files, const TokenizeOptions& options,
                               const std::function<void(const TokenizeProgress&)>& progress) {
  std::vector<std::string> inputs = {options.tokenizer};
  for (const CorpusFile& file : files) inputs.push_back(file.path);
  check_output_file(options.output, inputs);
  if (options.validation > 0) check_output_file(validation_path(options.output), inputs);
  return CorpusTokenizer(files, options).run(progress);
}

}  // namespace fleet::text
