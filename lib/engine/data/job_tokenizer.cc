#include "data/job_tokenizer.h"

#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/regular_file.h"
#include "base/terminal_text.h"
#include "base/thread.h"

namespace fleet::data {
namespace {

// data.tokenizer: a file, or a model's folder.
std::string tokenizer_file(const Settings& data, const std::string& root) {
  return text::tokenizer_path(under_root(root, data.text("tokenizer")));
}

}  // namespace

Schema tokenizer_keys() {
  return Schema()
      .text("tokenizer", "",
            "File with the tokenizer (tokenizer.json, or ranks of tiktoken), or a model's folder")
      .as_path()
      .text("text_key", "text", "Key of the text in JSON lines")
      .text("token_cache", "",
            "Folder for the tokens of the texts, which are made once; default: ~/.cache/fleetrun")
      .as_path();
}

TokenizerIdentity JobTokenizer::identity() const { return {shown_path(path), hash}; }

JobTokenizer open_job_tokenizer(const SourceContext& context) {
  const Settings& data = *context.data;
  if (data.text("tokenizer").empty()) {
    throw Error(ErrorCode::kUsage, "no tokenizer is given", "data.tokenizer",
                "set it to a tokenizer.json, a file of ranks (.tiktoken), or a model's folder");
  }
  JobTokenizer opened{.path = tokenizer_file(data, context.root)};
  check_named_path(opened.path, "data.tokenizer");
  const std::optional<uint64_t> hash = hash_file(opened.path);
  if (!hash) throw Error(ErrorCode::kIo, "cannot be read", opened.path, "check data.tokenizer");
  opened.hash = *hash;
  const auto tokenizer =
      std::make_shared<const text::Tokenizer>(text::Tokenizer::load(opened.path));
  opened.tokenizer = tokenizer;
  opened.ids = [tokenizer](const std::string& token) { return tokenizer->token_id(token); };
  const auto size = static_cast<int64_t>(tokenizer->vocabulary_size());
  if (context.vocabulary > 0 && size > context.vocabulary) {
    throw Error(ErrorCode::kUsage,
                shown_path(opened.path) + " has " + std::to_string(size) +
                    " tokens, but model.vocab_size is " + std::to_string(context.vocabulary),
                "data.tokenizer",
                "use the tokenizer of the model, or set model.vocab_size to " +
                    std::to_string(size) + " or more");
  }
  return opened;
}

std::string configured_token(const std::string& tokenizer, const std::string& name) {
  constexpr int64_t kMost = 16 << 20;
  const std::filesystem::path path =
      std::filesystem::path(tokenizer).parent_path() / "tokenizer_config.json";
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return "";
  const auto config = Json::try_parse(read_regular_file(path.string(), kMost));
  const Json* token = config && config->is_object() ? config->find(name) : nullptr;
  if (token && token->is_object()) token = token->find("content");
  return token && token->is_string() ? token->get<std::string>() : "";
}

void check_text_paths(const Settings& split, const SourceContext& context) {
  for (const std::string& word : split.texts("file")) {
    check_named_path(under_root(context.root, word),
                     context.train ? "data.train.file" : "data.test.file");
  }
}

Schema text_files_key(const std::string& help) {
  return Schema().texts("file", {}, help).as_path();
}

void declare_text_files(SourceType* def) {
  def->names_data = [](const Settings& split) { return !split.texts("file").empty(); };
  def->describe = describe_text_files;
}

void describe_text_files(const Settings& split, SourceContext* context) {
  if (context->train) open_job_tokenizer(*context);
  check_text_paths(split, *context);
}

Schema row_keys(int64_t length, const std::string& help) {
  return Schema()
      .integer("sequence_length", length, 1, 1e7, help)
      .text("tokenizer", "",
            "File with the tokenizer (tokenizer.json, or BERT's vocab.txt), or a model's folder")
      .as_path();
}

TokenCacheRequest cache_request(const Settings& split, const SourceContext& context,
                                const JobTokenizer& opened) {
  const std::vector<std::string> words = split.texts("file");
  std::vector<std::string> paths;
  for (const std::string& word : words) paths.push_back(under_root(context.root, word));
  return {.files = text::find_corpus(paths),
          .tokenizer_path = opened.path,
          .tokenizer_hash = opened.hash,
          .text_key = context.data->text("text_key"),
          .folder = context.data->text("token_cache"),
          .name = shown_path(words[0]) + (words.size() > 1 ? ", ..." : ""),
          .threads = available_cores().size()};
}

}  // namespace fleet::data
