#include "text/tokenize_corpus.h"

#include <filesystem>

#include "base/counted.h"
#include "base/error.h"
#include "base/file_status.h"
#include "base/folder_lock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
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
  size_t vocabulary = tokenizer.vocabulary_size();
  if (options.sentences != SentenceForm::kNone)
    vocabulary = sentence_marks(vocabulary).vocabulary();
  const TokenWidth fits = token_width_for(vocabulary);
  if (!options.width) return fits;
  if (*options.width == TokenWidth::kUint16 && fits == TokenWidth::kUint32) {
    throw Error(ErrorCode::kUsage,
                "a vocabulary of " + std::to_string(tokenizer.vocabulary_size()) +
                    " tokens does not fit into uint16",
                options.tokenizer, "leave out --type, or give uint32");
  }
  return *options.width;
}

// Everything that the tokens of a part depend on, besides its file. What happens to damaged lines
// is not here: see make_part().
std::string manifest_text(const TokenizeOptions& options, uint32_t eos, TokenWidth width) {
  const uint64_t tokenizer = hash_text(read_file(options.tokenizer));
  Json json = {{"version", kPartsVersion},
               {"tokenizer", format_printf("%016llx", static_cast<unsigned long long>(tokenizer))},
               {"text_key", options.text_key},
               {"eos", static_cast<int>(options.eos)},
               {"eos_id", uint64_t{eos}},
               {"parse_special", options.parse_special},
               {"validation", options.validation},
               {"seed", options.seed},
               {"width", static_cast<int>(width)},
               {"part_bytes", options.part_bytes}};
  if (options.sentences != SentenceForm::kNone) {
    json["sentences"] = static_cast<int>(options.sentences);
  }
  return json.dump_lossy(1) + "\n";
}

// "00000012.json": a part's number has at least 8 digits.
bool is_part_name(const std::string& name) {
  return name.find_first_not_of("0123456789") == name.find('.') && name.find('.') >= 8 &&
         name.find('.') != std::string::npos;
}

bool has_finished_part(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_part_name(name) && name.ends_with(".json")) return true;
  }
  return false;
}

// Removes the parts, and nothing that a user has put there.
void remove_parts(const std::string& folder) {
  std::vector<fs::path> parts;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_part_name(name) || name.starts_with("manifest.json")) parts.push_back(entry.path());
  }
  for (const fs::path& part : parts) fs::remove(part);
}

void remove_parts_folder(const std::string& folder) {
  remove_parts(folder);
  fs::remove(folder + "/.lock");
  std::error_code not_empty;
  fs::remove(folder, not_empty);
}

// The folder of parts: new, or that of an earlier run. Parts that the same call would not make are
// only a cache that has become useless.
UniqueFd open_parts(const std::string& folder, const std::string& manifest) {
  make_directories(folder);
  UniqueFd held = lock_folder(folder, "fleetrun tokenize");
  const std::string path = folder + "/manifest.json";
  const bool known = path_exists(path);
  if (known && read_file(path) == manifest) return held;
  if (known && has_finished_part(folder)) {
    spdlog::info("{}: another tokenizer or other options made these parts; they are made again",
                 folder);
  }
  remove_parts(folder);
  write_file_atomically(path, manifest);
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
    try {
      return encode(progress);
    } catch (...) {
      if (!has_finished_part(folder_)) remove_parts_folder(folder_);
      throw;
    }
  }

 private:
  TokenizeResult encode(const std::function<void(const TokenizeProgress&)>& progress) {
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
    remove_parts_folder(folder_);
    return result;
  }

  void make_part(size_t number, PartEncoder& encoder) {
    const CorpusPart& part = parts_[number];
    const CorpusFile& file = files_[part.file];
    const PartFiles files(folder_, number);
    const auto found = files.find(file, part, width_);
    // A part without damage is the same whatever happens to damaged lines.
    if (found && (options_.skip_damaged || found->damaged == 0)) {
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

  // If no text is left, the damage is the reason.
  void refuse_damage(const TokenizeResult& result) const {
    for (const PartSummary& part : summaries_) {
      if (!part.first_damage) continue;
      throw Error(ErrorCode::kUsage,
                  "no text is left without " + counted(result.damaged, "damaged line") +
                      "; the first: " + part.first_damage->failure(),
                  part.first_damage->where(), part.first_damage->next());
    }
  }

  // Another number would repair these, so the parts are of no use.
  void check_result(const TokenizeResult& result) const {
    const bool no_validation = options_.validation > 0 && result.validation_tokens == 0;
    if (result.tokens > 0 && !no_validation) return;
    remove_parts(folder_);
    const std::string documents = counted(result.documents, "document");
    if (result.tokens == 0 && result.validation_tokens == 0) {
      refuse_damage(result);
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
  FLEET_CHECK(
      options.sentences == SentenceForm::kNone ||
          (options.eos == EosPlace::kNone && !options.parse_special && options.validation == 0),
      "options that do not fit sentences");
  check_output_file(options.output, inputs);
  if (options.validation > 0) check_output_file(validation_path(options.output), inputs);
  return CorpusTokenizer(files, options).run(progress);
}

}  // namespace fleet::text
