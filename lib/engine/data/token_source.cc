#include "data/token_source.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/file_status.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet::data {
namespace {

class TokenRows : public Source {
 public:
  TokenRows(TokenSourceParts parts, std::unique_ptr<RowLayout> layout, std::vector<Column> columns,
            const RowTokens& special, int64_t vocabulary)
      : parts_(std::move(parts)),
        layout_(std::move(layout)),
        columns_(std::move(columns)),
        special_(special),
        vocabulary_(vocabulary) {}
  int64_t size() const override { return layout_->size(); }
  std::vector<Column> columns() const override { return columns_; }
  int64_t length(int64_t index) const override { return layout_->tokens(index); }
  double weight(int64_t index, uint64_t /*key*/) const override { return layout_->weight(index); }
  std::string name(int64_t index) const override {
    return parts_.name + ", row " + std::to_string(index);
  }
  TokenizerIdentity tokenizer() const override { return parts_.tokenizer; }
  void fill(int64_t index, uint64_t /*key*/, std::span<void* const> to) const override {
    const auto length = static_cast<size_t>(columns_[0].shape[0]);
    const auto ids = [&](int i) { return std::span(static_cast<int64_t*>(to[i]), length); };
    fill_row(*parts_.tokens, layout_->row(index), special_, vocabulary_,
             {ids(0), ids(1), ids(2), ids(3), {static_cast<float*>(to[4]), length}});
  }

 private:
  const TokenSourceParts parts_;
  const std::unique_ptr<RowLayout> layout_;
  const std::vector<Column> columns_;
  const RowTokens special_;
  const int64_t vocabulary_;
};

int64_t stride_of(const Settings& data) {
  const int64_t stride = data.integer("evaluation.stride");
  return stride > 0 ? stride : std::max<int64_t>(data.integer("sequence_length") / 2, 1);
}

// data.evaluation.prefix; by default the mark.
uint32_t prefix_of(const Settings& data, const TokenSourceParts& parts, int64_t vocabulary) {
  std::optional<uint32_t> prefix = parts.mark.token;
  if (data.text("evaluation.prefix") != "auto") {
    prefix = named_token(data, "evaluation.prefix", parts.token_ids);
  }
  check_named_token(prefix, "evaluation.prefix", vocabulary);
  if (prefix) return *prefix;
  throw Error(ErrorCode::kUsage, "rolling windows begin with a prefix token, and none is given",
              "data.evaluation.prefix",
              "set it to the token that begins or ends a text, or set data.end_of_text");
}

std::unique_ptr<RowLayout> evaluation_rows(const Settings& data, const TokenSourceParts& parts,
                                           const std::vector<TokenRange>& documents) {
  const std::vector<TokenRange> bare = without_marks(documents, *parts.tokens, parts.mark);
  const int64_t length = data.integer("sequence_length");
  if (data.text("evaluation.windows") == "rolling") return rolling_rows(bare, length);
  return strided_rows(bare, length, stride_of(data));
}

std::vector<TokenRange> ranges_of(const TokenSourceParts& parts, const SourceContext& context,
                                  bool needs_documents) {
  const int64_t size = parts.tokens->size();
  if (size == 0) return {};
  const auto& [part, seed, validates] = context.validation;
  if (part == 0 && !needs_documents) return {{0, size}};
  std::vector<TokenRange> documents = documents_of(*parts.tokens, parts.mark);
  return part > 0 ? divided(documents, part, seed, validates) : documents;
}

}  // namespace

Schema token_row_keys() {
  return Schema()
      .integer("sequence_length", 1024, 1, 1e7, "Tokens of a row")
      .choice("packing", "best_fit", {"none", "best_fit", "stream"},
              "Rows of tokens: best_fit: several documents in a row, with little padding; none: "
              "one document in a row; stream: consecutive windows over all documents. Documents "
              "never see each other")
      .text("end_of_text", "auto",
            "Token that separates documents: its number, or its text if there is a tokenizer; "
            "auto: that of the file's format or of the tokenizer; none: the data are one document")
      .choice("evaluation.windows", "packed", {"packed", "rolling", "strided"},
              "Rows of an evaluation: packed: as in training; rolling: each token of a document "
              "is predicted once, the first from a prefix token, as lm-eval computes a "
              "perplexity; strided: overlapping windows, as transformers does")
      .integer("evaluation.stride", 0, 0, 1e7,
               "Tokens between the starts of two strided windows; 0: half of data.sequence_length")
      .text("evaluation.prefix", "auto",
            "Token before a document's first one for rolling windows: its number or text; auto: "
            "data.end_of_text");
}

std::vector<Column> token_row_columns(const Settings& data) {
  const Shape row = {data.integer("sequence_length")};
  const auto by_length = [&](const char* name, DType dtype) {
    return Column{.name = name, .dtype = dtype, .shape = row, .by_length = true};
  };
  return {by_length("input_ids", DType::kInt64), by_length("position_ids", DType::kInt64),
          by_length("document_ids", DType::kInt64), by_length("labels", DType::kInt64),
          by_length("loss_weight", DType::kFloat32)};
}

void check_token_row_keys(const Settings& data) {
  const std::string& windows = data.text("evaluation.windows");
  const auto refuse = [&](const std::string& key, const std::string& needed) {
    if (!data.given(key) || windows == needed) return;
    throw Error(ErrorCode::kUsage, "has no effect with evaluation windows that are " + windows,
                "data." + key, "remove it, or set data.evaluation.windows to " + needed);
  };
  refuse("evaluation.stride", "strided");
  refuse("evaluation.prefix", "rolling");
  const int64_t stride = stride_of(data), length = data.integer("sequence_length");
  if (windows == "strided" && stride > length) {
    throw Error(ErrorCode::kUsage,
                "is " + std::to_string(stride) + ", and a row has " + std::to_string(length) +
                    " tokens: windows would leave out tokens",
                "data.evaluation.stride", "use at most data.sequence_length");
  }
}

std::optional<uint32_t> named_token(const Settings& data, const std::string& key,
                                    const TokenIds& token_ids) {
  const std::string& text = data.text(key);
  if (text == "none") return std::nullopt;
  if (token_ids) {
    if (const auto id = token_ids(text)) return id;
  }
  long long number = 0;
  if (parse_int(text, &number) && number >= 0 && number <= UINT32_MAX) {
    return static_cast<uint32_t>(number);
  }
  throw Error(ErrorCode::kUsage, "there is no token '" + text + "'", "data." + key,
              token_ids ? "use a token of the tokenizer, its number, or none"
                        : "use the number of a token, or none");
}

void check_named_token(std::optional<uint32_t> token, const std::string& key, int64_t vocabulary) {
  if (!token || vocabulary == 0 || *token < vocabulary) return;
  throw Error(ErrorCode::kUsage,
              "the model has no token " + std::to_string(*token) + ": model.vocab_size is " +
                  std::to_string(vocabulary),
              "data." + key, "use a token below that, or raise model.vocab_size");
}

void check_named_path(const std::string& path, const std::string& key) {
  if (path.find_first_of("*?[{") != std::string::npos || path_exists(path)) return;
  throw Error(ErrorCode::kUsage, shown_path(path) + " does not exist", key, "correct the path");
}

std::unique_ptr<Source> make_token_source(const TokenSourceParts& parts,
                                          const SourceContext& context) {
  const Settings& data = *context.data;
  check_token_row_keys(data);
  check_named_token(parts.mark.token, "end_of_text", context.vocabulary);
  check_tokens(*parts.tokens, context.vocabulary, parts.name);
  const bool evaluates = !context.train || context.validation.validates;
  const bool special_windows = evaluates && data.text("evaluation.windows") != "packed";
  const std::string& packing = data.text("packing");
  const int64_t length = data.integer("sequence_length");
  const std::vector<TokenRange> ranges =
      ranges_of(parts, context, special_windows || packing != "stream");
  RowTokens special{.padding = parts.mark.token.value_or(0), .mark = parts.mark.token.value_or(0)};
  std::unique_ptr<RowLayout> layout;
  if (special_windows) {
    layout = evaluation_rows(data, parts, ranges);
    if (data.text("evaluation.windows") == "rolling") {
      special.prefix = prefix_of(data, parts, context.vocabulary);
    }
  } else if (packing == "stream") {
    layout = stream_rows(*parts.tokens, parts.mark, ranges, length);
  } else {
    layout = document_rows(ranges, parts.mark, length, packing == "best_fit");
  }
  if (layout->size() == 0) {
    throw Error(ErrorCode::kUsage,
                "the data have " + std::to_string(parts.tokens->size()) +
                    " tokens, too few for a row of " + std::to_string(length),
                parts.name, "use more data, or lower data.sequence_length");
  }
  if (context.verbose) {
    spdlog::info("{}: {} tokens, {} rows of {}", parts.name, parts.tokens->size(), layout->size(),
                 length);
  }
  return std::make_unique<TokenRows>(parts, std::move(layout), token_row_columns(data), special,
                                     context.vocabulary);
}

}  // namespace fleet::data
