// Files of token ids: of nanoGPT, of llm.c, or those that `fleetrun tokenize` has written. They are
// mapped, so opening them costs nothing, and ranks of a node share their pages.
#include "base/error.h"
#include "base/terminal_text.h"
#include "data/tar_files.h"
#include "data/token_files.h"
#include "data/token_source.h"

namespace fleet::data {
namespace {

// Tokens that llm.c writes before each document.
constexpr uint32_t kGpt2EndOfText = 50256, kLlama3BeginOfText = 128000;

std::optional<text::TokenWidth> width_of(const Settings& data) {
  const std::string& type = data.text("token_type");
  if (type == "uint16") return text::TokenWidth::kUint16;
  if (type == "uint32") return text::TokenWidth::kUint32;
  return std::nullopt;
}

// The key's token; of files of llm.c that of their tokenizer.
DocumentMark mark_of(const Settings& data, const TokenFiles& files) {
  const bool llm_c = files.format() == text::TokenFormat::kLlmC;
  const std::string& place = data.text("mark_place");
  DocumentMark mark{.token = std::nullopt, .begins = place == "auto" ? llm_c : place == "before"};
  if (data.text("end_of_text") != "auto") {
    mark.token = named_token(data, "end_of_text", nullptr);
  } else if (llm_c) {
    const bool wide = files.width() == text::TokenWidth::kUint32;
    mark.token = wide ? kLlama3BeginOfText : kGpt2EndOfText;
  }
  return mark;
}

const char* file_key(const SourceContext& context) {
  return context.train ? "data.train.file" : "data.test.file";
}

// The files of all words, which exist unless they are patterns.
std::vector<std::string> token_paths(const std::vector<std::string>& words,
                                     const SourceContext& context) {
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    check_named_path(under_root(context.root, word), file_key(context));
    for (std::string& path : shard_names(word, context.root)) paths.push_back(std::move(path));
  }
  return paths;
}

std::unique_ptr<Source> open_tokens(const Settings& split, const SourceContext& context) {
  const std::vector<std::string> words = split.texts("file");
  if (words.empty()) return no_test_data(context, file_key(context));
  const auto files =
      std::make_shared<TokenFiles>(token_paths(words, context), width_of(*context.data));
  return make_token_source({.tokens = files,
                            .mark = mark_of(*context.data, *files),
                            .token_ids = nullptr,
                            .name = shown_path(words[0]) + (words.size() > 1 ? ", ..." : "")},
                           context);
}

void describe_tokens(const Settings& split, SourceContext* context) {
  const Settings& data = *context->data;
  check_token_row_keys(data);
  for (const char* key : {"end_of_text", "evaluation.prefix"}) {
    if (data.text(key) == "auto") continue;
    check_named_token(named_token(data, key, nullptr), key, context->vocabulary);
  }
  for (const std::string& word : split.texts("file")) {
    check_named_path(under_root(context->root, word), file_key(*context));
  }
}

}  // namespace
FLEET_SOURCE(tokens) {
  def.schema = [](bool) {
    return Schema()
        .texts("file", {},
               "Files of token ids (.bin of nanoGPT, llm.c or fleetrun tokenize), or patterns: "
               "train_*.bin, train_{000..099}.bin")
        .as_path();
  };
  def.shared = [] {
    return token_row_keys()
        .choice("token_type", "auto", {"auto", "uint16", "uint32"},
                "Type of the ids in files without a header; auto: uint16")
        .choice("mark_place", "auto", {"auto", "after", "before"},
                "Place of data.end_of_text: after each document, as nanoGPT writes it, or before, "
                "as llm.c does; auto: before in files with a header of llm.c");
  };
  def.divides = true;
  def.names_data = [](const Settings& split) { return !split.texts("file").empty(); };
  def.describe = describe_tokens;
  def.columns = [](const Settings&, const SourceContext& context) {
    return token_row_columns(*context.data);
  };
  def.open = open_tokens;
}

}  // namespace fleet::data
