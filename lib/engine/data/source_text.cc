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

std::unique_ptr<Source> open_texts(const Settings& split, const SourceContext& context) {
  const std::vector<std::string> words = split.texts("file");
  const std::string key = context.train ? "data.train.file" : "data.test.file";
  if (words.empty()) return no_test_data(context, key);
  const Settings& data = *context.data;
  check_tokenizer_key(data);
  check_token_row_keys(data);
  TokenCacheRequest request{.tokenizer_path = tokenizer_file(data, context.root),
                            .text_key = data.text("text_key"),
                            .parse_special = data.boolean("parse_special"),
                            .folder = data.text("token_cache"),
                            .name = shown_path(words[0]) + (words.size() > 1 ? ", ..." : ""),
                            .threads = available_cores().size()};
  auto tokenizer = std::make_shared<text::Tokenizer>(text::Tokenizer::load(request.tokenizer_path));
  const TokenIds ids = [tokenizer](const std::string& token) { return tokenizer->token_id(token); };
  request.mark = end_of_text(data, request.tokenizer_path, ids);
  std::vector<std::string> paths;
  for (const std::string& word : words) paths.push_back(under_root(context.root, word));
  request.files = text::find_corpus(paths);
  const std::string tokens = cached_tokens(request, *tokenizer);
  return make_token_source({.tokens = std::make_shared<TokenFiles>(std::vector<std::string>{tokens},
                                                                   cached_width(*tokenizer)),
                            .mark = {.token = request.mark, .begins = false},
                            .token_ids = ids,
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
  def.describe = [](const Settings&, SourceContext* context) {
    check_tokenizer_key(*context->data);
    check_token_row_keys(*context->data);
  };
  def.columns = [](const Settings&, const SourceContext& context) {
    return token_row_columns(*context.data);
  };
  def.open = open_texts;
}

}  // namespace fleet::data
