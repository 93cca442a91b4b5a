// Texts: plain files, each a document, or JSON lines with a text each. They are tokenized once,
// into a cache; what follows is as for files of tokens.
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/regular_file.h"
#include "base/terminal_text.h"
#include "base/thread.h"
#include "data/token_cache.h"
#include "data/token_files.h"
#include "data/token_source.h"

namespace fleet::data {
namespace {

// data.tokenizer: a file, or a model's folder with tokenizer.json.
std::string tokenizer_file(const Settings& data, const std::string& root) {
  const std::string path = under_root(root, data.text("tokenizer"));
  std::error_code unknown;
  return std::filesystem::is_directory(path, unknown) ? path + "/tokenizer.json" : path;
}

void check_tokenizer_key(const Settings& data) {
  if (!data.text("tokenizer").empty()) return;
  throw Error(ErrorCode::kUsage, "no tokenizer is given", "data.tokenizer",
              "set it to a tokenizer.json, a file of ranks (.tiktoken), or a model's folder");
}

// eos_token of the tokenizer_config.json next to the tokenizer; "" if none.
std::string configured_end(const std::string& tokenizer) {
  constexpr int64_t kMost = 16 << 20;
  const std::filesystem::path path =
      std::filesystem::path(tokenizer).parent_path() / "tokenizer_config.json";
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return "";
  const auto config = Json::try_parse(read_regular_file(path.string(), kMost));
  const Json* token = config && config->is_object() ? config->find("eos_token") : nullptr;
  if (token && token->is_object()) token = token->find("content");
  return token && token->is_string() ? token->get<std::string>() : "";
}

// data.end_of_text; by default the tokenizer's own.
std::optional<uint32_t> end_of_text(const Settings& data, const std::string& file,
                                    const TokenIds& ids) {
  if (data.text("end_of_text") != "auto") return named_token(data, "end_of_text", ids);
  for (const std::string& name :
       {configured_end(file), std::string("<|endoftext|>"), std::string("<|end_of_text|>"),
        std::string("</s>"), std::string("<eos>"), std::string("[SEP]")}) {
    if (name.empty()) continue;
    if (const auto id = ids(name)) return id;
  }
  throw Error(ErrorCode::kUsage, "the tokenizer has no token that usually ends a text",
              "data.end_of_text", "set it to a token of the tokenizer, or to none");
}

struct JobTokenizer {
  std::string path;
  std::shared_ptr<text::Tokenizer> tokenizer;
  TokenIds ids;
  std::optional<uint32_t> mark;
};

// kUsage if the model lacks tokens of the tokenizer, or those that keys of data.* name.
JobTokenizer open_tokenizer(const SourceContext& context) {
  const Settings& data = *context.data;
  check_tokenizer_key(data);
  JobTokenizer opened{.path = tokenizer_file(data, context.root)};
  check_named_path(opened.path, "data.tokenizer");
  const auto tokenizer = std::make_shared<text::Tokenizer>(text::Tokenizer::load(opened.path));
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
  opened.mark = end_of_text(data, opened.path, opened.ids);
  check_named_token(opened.mark, "end_of_text", context.vocabulary);
  if (data.text("evaluation.prefix") != "auto") {
    check_named_token(named_token(data, "evaluation.prefix", opened.ids), "evaluation.prefix",
                      context.vocabulary);
  }
  return opened;
}

void check_text_paths(const Settings& split, const SourceContext& context) {
  for (const std::string& word : split.texts("file")) {
    check_named_path(under_root(context.root, word),
                     context.train ? "data.train.file" : "data.test.file");
  }
}

std::unique_ptr<Source> open_texts(const Settings& split, const SourceContext& context) {
  const std::vector<std::string> words = split.texts("file");
  const std::string key = context.train ? "data.train.file" : "data.test.file";
  if (words.empty()) return no_test_data(context, key);
  const Settings& data = *context.data;
  check_token_row_keys(data);
  check_text_paths(split, context);
  const JobTokenizer opened = open_tokenizer(context);
  TokenCacheRequest request{.tokenizer_path = opened.path,
                            .text_key = data.text("text_key"),
                            .mark = opened.mark,
                            .parse_special = data.boolean("parse_special"),
                            .folder = data.text("token_cache"),
                            .name = shown_path(words[0]) + (words.size() > 1 ? ", ..." : ""),
                            .threads = available_cores().size()};
  std::vector<std::string> paths;
  for (const std::string& word : words) paths.push_back(under_root(context.root, word));
  request.files = text::find_corpus(paths);
  const std::string tokens = cached_tokens(request, *opened.tokenizer);
  return make_token_source({.tokens = std::make_shared<TokenFiles>(std::vector<std::string>{tokens},
                                                                   cached_width(*opened.tokenizer)),
                            .mark = {.token = request.mark, .begins = false},
                            .token_ids = opened.ids,
                            .name = request.name},
                           context);
}

}  // namespace
FLEET_SOURCE(text) {
  def.schema = [](bool) {
    return Schema()
        .texts("file", {},
               "Files, folders or patterns: plain text, where a file is a document, or JSON lines "
               "(.jsonl), where a line is one; with .gz, compressed")
        .as_path();
  };
  def.shared = [] {
    return token_row_keys()
        .text("tokenizer", "",
              "File with the tokenizer (tokenizer.json, or ranks of tiktoken), or a model's folder")
        .as_path()
        .text("text_key", "text", "Key of the text in JSON lines")
        .boolean("parse_special", false,
                 "Texts of special tokens in a document are these tokens; false: ordinary text")
        .text("token_cache", "",
              "Folder for the tokens of the texts, which are made once; default: "
              "~/.cache/fleetrun")
        .as_path();
  };
  def.divides = true;
  def.names_data = [](const Settings& split) { return !split.texts("file").empty(); };
  def.describe = [](const Settings& split, SourceContext* context) {
    check_token_row_keys(*context->data);
    if (context->train) open_tokenizer(*context);
    check_text_paths(split, *context);
  };
  def.columns = [](const Settings&, const SourceContext& context) {
    return token_row_columns(*context.data);
  };
  def.open = open_texts;
}

}  // namespace fleet::data
