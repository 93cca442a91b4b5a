// Texts: plain files, each a document, or JSON lines with a text each. They are tokenized once,
// into a cache; what follows is as for files of tokens.
#include <utility>

#include "base/error.h"
#include "data/job_tokenizer.h"
#include "data/token_cache.h"
#include "data/token_files.h"
#include "data/token_source.h"

namespace fleet::data {
namespace {

// data.end_of_text; by default the tokenizer's own.
std::optional<uint32_t> end_of_text(const Settings& data, const std::string& file,
                                    const TokenIds& ids) {
  if (data.text("end_of_text") != "auto") return named_token(data, "end_of_text", ids);
  for (const std::string& name : {configured_token(file, "eos_token"), std::string("<|endoftext|>"),
                                  std::string("<|end_of_text|>"), std::string("</s>"),
                                  std::string("<eos>"), std::string("[SEP]")}) {
    if (name.empty()) continue;
    if (const auto id = ids(name)) return id;
  }
  throw Error(ErrorCode::kUsage, "the tokenizer has no token that usually ends a text",
              "data.end_of_text", "set it to a token of the tokenizer, or to none");
}

// kUsage if the model lacks tokens of the tokenizer, or those that keys of data.* name.
std::optional<uint32_t> check_marks(const SourceContext& context, const JobTokenizer& opened) {
  const Settings& data = *context.data;
  const auto mark = end_of_text(data, opened.path, opened.ids);
  check_named_token(mark, "end_of_text", context.vocabulary);
  if (data.text("evaluation.prefix") != "auto") {
    check_named_token(named_token(data, "evaluation.prefix", opened.ids), "evaluation.prefix",
                      context.vocabulary);
  }
  return mark;
}

std::unique_ptr<Source> open_texts(const Settings& split, const SourceContext& context) {
  if (split.texts("file").empty()) {
    return no_test_data(context, context.train ? "data.train.file" : "data.test.file");
  }
  const Settings& data = *context.data;
  check_token_row_keys(data);
  check_text_paths(split, context);
  const JobTokenizer opened = open_job_tokenizer(context);
  TokenCacheRequest request = cache_request(split, context, opened);
  request.mark = check_marks(context, opened);
  request.parse_special = data.boolean("parse_special");
  const std::string tokens = cached_tokens(request, *opened.tokenizer);
  return make_token_source({.tokens = std::make_shared<TokenFiles>(std::vector<std::string>{tokens},
                                                                   cached_width(*opened.tokenizer)),
                            .mark = {.token = request.mark, .begins = false},
                            .token_ids = opened.ids,
                            .name = request.name,
                            .tokenizer = opened.identity()},
                           context);
}

}  // namespace

FLEET_SOURCE(text) {
  def.schema = [](bool) {
    return text_files_key(
        "Files, folders or patterns: plain text, where a file is a document, or JSON lines "
        "(.jsonl), where a line is one; with .gz, compressed");
  };
  def.shared = [] {
    return token_row_keys()
        .section("", tokenizer_keys())
        .boolean("parse_special", false,
                 "Texts of special tokens in a document are these tokens; false: ordinary text");
  };
  def.divides = true;
  declare_text_files(&def);
  def.describe = [](const Settings& split, SourceContext* context) {
    check_token_row_keys(*context->data);
    if (context->train) check_marks(*context, open_job_tokenizer(*context));
    check_text_paths(split, *context);
  };
  def.columns = [](const Settings&, const SourceContext& context) {
    return token_row_columns(*context.data);
  };
  def.open = open_texts;
}

}  // namespace fleet::data
