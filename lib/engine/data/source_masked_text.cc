// Texts for models that predict masked tokens, such as BERT: plain files, JSON lines, or files of
// sentences. They are divided into sentences and tokenized once, into a cache. Rows are pairs of
// pieces of documents, or full sentences; which tokens of a row are masked is drawn when it is
// filled.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "data/job_tokenizer.h"
#include "data/random.h"
#include "data/sentence_rows.h"
#include "data/token_cache.h"
#include "data/token_files.h"
#include "data/token_masks.h"
#include "text/text_splitter.h"

namespace fleet::data {
namespace {

constexpr int64_t kNoLabel = -100;

// The tokens that rows have besides those of texts.
struct RowSpecials {
  uint32_t cls, sep, mask, pad;
};

uint32_t special_token(const Settings& data, const JobTokenizer& opened, const std::string& name,
                       std::array<const char*, 2> usual) {
  if (data.text(name) != "auto") {
    const auto token = named_token(data, name, opened.ids);
    if (token) return *token;
    throw Error(ErrorCode::kUsage, "rows need this token", "data." + name, "name a token");
  }
  for (const std::string& one :
       {configured_token(opened.path, name), std::string(usual[0]), std::string(usual[1])}) {
    if (one.empty()) continue;
    if (const auto id = opened.ids(one)) return *id;
  }
  throw Error(ErrorCode::kUsage,
              std::string("the tokenizer has neither ") + usual[0] + " nor " + usual[1],
              "data." + name, "set it to a token of the tokenizer");
}

RowSpecials specials_of(const SourceContext& context, const JobTokenizer& opened) {
  const Settings& data = *context.data;
  RowSpecials specials{.cls = special_token(data, opened, "cls_token", {"[CLS]", "<s>"}),
                       .sep = special_token(data, opened, "sep_token", {"[SEP]", "</s>"}),
                       .mask = special_token(data, opened, "mask_token", {"[MASK]", "<mask>"}),
                       .pad = special_token(data, opened, "pad_token", {"[PAD]", "<pad>"})};
  const auto check = [&](uint32_t id, const std::string& key) {
    if (id < opened.tokenizer->vocabulary_size()) return;
    throw Error(ErrorCode::kUsage, "the tokenizer has no token " + std::to_string(id),
                "data." + key, "use a token of the tokenizer");
  };
  check(specials.cls, "cls_token");
  check(specials.sep, "sep_token");
  check(specials.mask, "mask_token");
  check(specials.pad, "pad_token");
  return specials;
}

// Which tokens continue the word of the token before, by the mark that the vocabulary writes in
// front of others: "##" before those that continue (WordPiece), or a mark of the space before those
// that do not.
std::vector<bool> continuing_tokens(const text::Tokenizer& tokenizer, const std::string& path) {
  const auto size = static_cast<uint32_t>(tokenizer.vocabulary_size());
  std::vector<std::string> texts(size);
  for (uint32_t id = 0; id < size; ++id) texts[id] = tokenizer.token(id).value_or("");
  const auto any = [&](const char* prefix) {
    return std::ranges::any_of(texts, [&](const auto& text) { return text.starts_with(prefix); });
  };
  const bool bytes = tokenizer.splitter().byte_level();
  const bool pieces = !bytes && any("##");
  const char* mark = pieces ? "##" : bytes ? "Ġ" : "▁";
  if (!any(mark)) {
    throw Error(ErrorCode::kUsage, shown_path(path) + " does not tell where words begin",
                "data.whole_word_masking", "set it to false");
  }
  std::vector<bool> continues(size);
  for (uint32_t id = 0; id < size; ++id) continues[id] = texts[id].starts_with(mark) == pieces;
  return continues;
}

int64_t masked_tokens(const Settings& data) {
  if (const int64_t given = data.integer("masked_tokens"); given > 0) return given;
  const auto length = static_cast<double>(data.integer("sequence_length"));
  return static_cast<int64_t>(std::ceil(length * data.number("masking_rate") - 1e-9));
}

MaskRules mask_rules(const SourceContext& context, const JobTokenizer& opened,
                     const RowSpecials& specials) {
  const Settings& data = *context.data;
  const text::Tokenizer& tokenizer = *opened.tokenizer;
  MaskRules rules{.rate = data.number("masking_rate"),
                  .most = masked_tokens(data),
                  .mask = specials.mask,
                  .vocabulary = static_cast<int64_t>(tokenizer.vocabulary_size()),
                  .special = std::vector<bool>(tokenizer.vocabulary_size()),
                  .continues = {}};
  for (const text::AddedToken& token : tokenizer.added_tokens()) {
    if (token.special) rules.special[token.id] = true;
  }
  for (const uint32_t id : {specials.cls, specials.sep, specials.mask, specials.pad}) {
    rules.special[id] = true;
  }
  if (data.boolean("whole_word_masking")) {
    rules.continues = continuing_tokens(tokenizer, opened.path);
  }
  return rules;
}

std::vector<Column> masked_columns(const Settings& data) {
  const Shape row = {data.integer("sequence_length")}, masked = {masked_tokens(data)};
  std::vector<Column> columns = {
      {"input_ids", DType::kInt64, row},           {"position_ids", DType::kInt64, row},
      {"document_ids", DType::kInt64, row},        {"token_type_ids", DType::kInt64, row},
      {"masked_positions", DType::kInt64, masked}, {"masked_labels", DType::kInt64, masked},
      {"loss_weight", DType::kFloat32, masked}};
  if (data.boolean("next_sentence")) {
    columns.push_back({"next_sentence_label", DType::kInt64, {}});
  }
  return columns;
}

struct MaskedTextParts {
  std::shared_ptr<const TokenSequence> tokens;
  text::SentenceMarks marks;
  std::shared_ptr<const SentenceRows> rows;
  RowSpecials specials;
  MaskRules rules;
  std::vector<Column> columns;
  std::string name;
  TokenizerIdentity tokenizer;
};

class MaskedText : public Source {
 public:
  explicit MaskedText(MaskedTextParts parts) : parts_(std::move(parts)) {}
  int64_t size() const override { return parts_.rows->size(); }
  std::vector<Column> columns() const override { return parts_.columns; }
  std::string name(int64_t index) const override {
    return parts_.name + ", row " + std::to_string(index);
  }
  TokenizerIdentity tokenizer() const override { return parts_.tokenizer; }
  double weight(int64_t index, uint64_t key) const override {
    return static_cast<double>(
        choose_masked(assembled(pieces_of(index, key)), parts_.rules, key).size());
  }
  void fill(int64_t index, uint64_t key, std::span<void* const> to) const override {
    const RowPieces pieces = pieces_of(index, key);
    const SentenceRow row = assembled(pieces);
    const auto ids = [&](int i) {
      return std::span(static_cast<int64_t*>(to[i]), parts_.columns[i].shape[0]);
    };
    fill_tokens(row, ids(0), ids(1), ids(2), ids(3));
    const std::vector<int64_t> places = choose_masked(row, parts_.rules, key);
    std::ranges::fill(ids(4), 0);
    std::ranges::fill(ids(5), kNoLabel);
    std::ranges::copy(places, ids(4).begin());
    for (size_t i = 0; i < places.size(); ++i) ids(5)[i] = row.ids[places[i]];
    auto* weights = static_cast<float*>(to[6]);
    std::fill_n(std::fill_n(weights, places.size(), 1.0f), ids(4).size() - places.size(), 0.0f);
    mask_tokens(places, parts_.rules, key, ids(0));
    if (to.size() > 7) *static_cast<int64_t*>(to[7]) = pieces.next_sentence_label;
  }

 private:
  RowPieces pieces_of(int64_t index, uint64_t key) const { return parts_.rows->row(index, key); }
  SentenceRow assembled(const RowPieces& pieces) const {
    return assemble_row(*parts_.tokens, parts_.marks, pieces.pieces, parts_.specials.cls,
                        parts_.specials.sep);
  }

  void fill_tokens(const SentenceRow& row, std::span<int64_t> ids, std::span<int64_t> positions,
                   std::span<int64_t> documents, std::span<int64_t> types) const {
    const size_t size = row.ids.size();
    const bool pair = parts_.columns.size() > 7;
    std::ranges::copy(row.ids, ids.begin());
    std::ranges::fill(ids.subspan(size), int64_t{parts_.specials.pad});
    for (size_t i = 0; i < ids.size(); ++i) {
      positions[i] = i < size ? static_cast<int64_t>(i) : 0;
      documents[i] = i < size ? 0 : -1;
      types[i] = pair && i < size && static_cast<int64_t>(i) >= row.ends[0] ? 1 : 0;
    }
  }

  const MaskedTextParts parts_;
};

// Opens no data.
void check_masked_keys(const Settings& data) {
  if (data.given("short_sequences") && !data.boolean("next_sentence")) {
    throw Error(ErrorCode::kUsage, "has no effect without pairs: rows of full sentences are full",
                "data.short_sequences", "remove it, or set data.next_sentence to true");
  }
  if (masked_tokens(data) > data.integer("sequence_length")) {
    throw Error(ErrorCode::kUsage,
                "is " + std::to_string(masked_tokens(data)) + ", and a row has " +
                    std::to_string(data.integer("sequence_length")) + " tokens",
                "data.masked_tokens", "use at most data.sequence_length, or 0");
  }
}

std::unique_ptr<SentenceRows> rows_of(const TokenSequence& tokens, const text::SentenceMarks& marks,
                                      const SourceContext& context) {
  const Settings& data = *context.data;
  std::vector<TokenRange> documents =
      documents_of(tokens, {.token = marks.document, .begins = false});
  const auto& [part, seed, validates] = context.validation;
  if (part > 0) documents = divided(documents, part, seed, validates);
  const int64_t length = data.integer("sequence_length");
  if (!data.boolean("next_sentence")) return full_sentence_rows(tokens, marks, documents, length);
  // The rows of an evaluation are the same for each seed.
  const bool evaluates = !context.train || validates;
  return sentence_pair_rows(tokens, marks, documents, length, data.number("short_sequences"),
                            evaluates ? 0 : context.seed);
}

void log_rows(const MaskedTextParts& parts, const Settings& data) {
  const SentenceRows& rows = *parts.rows;
  const int64_t length = data.integer("sequence_length"), most = parts.rules.most;
  int64_t tokens = 0, left_out = 0;  // in the pairs of an evaluation; others are as many, about
  for (int64_t i = 0; i < rows.size(); ++i) {
    const RowPieces row = rows.row(i, evaluation_key(i));
    tokens += row.tokens;
    left_out += row.left_out;
  }
  spdlog::info("{}: {} in {} of at most {}, {} or fewer in each", parts.name,
               counted(tokens, "token"), counted(rows.size(), "row"), length,
               counted(most, "masked token"));
  if (left_out > 0) {
    spdlog::info("{}: {} more left out at the ends of pairs that are too long", parts.name,
                 counted(left_out, "token"));
  }
  MaskRules free = parts.rules;
  free.most = length;
  if (const int64_t wanted = masked_budget(free, length); wanted > most) {
    spdlog::info("{}: full rows have {} masked tokens instead of {}: data.masked_tokens",
                 parts.name, most, wanted);
  }
}

std::unique_ptr<Source> open_masked_text(const Settings& split, const SourceContext& context) {
  if (split.texts("file").empty()) {
    return no_test_data(context, context.train ? "data.train.file" : "data.test.file");
  }
  const Settings& data = *context.data;
  check_masked_keys(data);
  check_text_paths(split, context);
  const JobTokenizer opened = open_job_tokenizer(context);
  const RowSpecials specials = specials_of(context, opened);
  TokenCacheRequest request = cache_request(split, context, opened);
  request.sentences = text::sentence_form(data.text("sentences"));
  const std::string cache = cached_tokens(request, *opened.tokenizer);
  const auto tokens = std::make_shared<TokenFiles>(
      std::vector<std::string>{cache}, cached_width(*opened.tokenizer, request.sentences));
  const text::SentenceMarks marks = text::sentence_marks(opened.tokenizer->vocabulary_size());
  MaskedTextParts parts{.tokens = tokens,
                        .marks = marks,
                        .rows = rows_of(*tokens, marks, context),
                        .specials = specials,
                        .rules = mask_rules(context, opened, specials),
                        .columns = masked_columns(data),
                        .name = request.name,
                        .tokenizer = opened.identity()};
  if (parts.rows->size() == 0) {
    throw Error(ErrorCode::kUsage, "the texts have no sentence", request.name, "use more data");
  }
  if (context.verbose) log_rows(parts, data);
  return std::make_unique<MaskedText>(std::move(parts));
}

Schema masked_text_keys() {
  return Schema()
      .integer("sequence_length", 128, 8, 1e6, "Tokens of a row")
      .section("", tokenizer_keys())
      .choice("sentences", "split", {"split", "lines"},
              "How texts are divided into sentences: split: by rules; lines: each line is a "
              "sentence, and in a text file an empty line ends a document")
      .boolean("next_sentence", true,
               "Rows are pairs of pieces, for next-sentence prediction: half of the second pieces "
               "follow the first, the others are of another document. false: rows of full "
               "sentences")
      .number("short_sequences", 0.1, 0, 1,
              "Probability that a document makes pairs of a random, shorter length")
      .number("masking_rate", 0.15, 0.001, 1,
              "Masked tokens of a row, of all its tokens; of these, 80 % become the mask token, 10 "
              "% a random one, and 10 % stay")
      .integer("masked_tokens", 0, 0, 1e6,
               "Maximum number of masked tokens in a row; 0: data.masking_rate x "
               "data.sequence_length, rounded up, so that it is never reached early")
      .boolean("whole_word_masking", false, "All pieces of a word are masked together")
      .text("cls_token", "auto",
            "First token of a row: its number or text; auto: the tokenizer's [CLS] or <s>")
      .text("sep_token", "auto",
            "Token behind each piece of a row; auto: the tokenizer's [SEP] or </s>")
      .text("mask_token", "auto", "Mask token; auto: the tokenizer's [MASK] or <mask>")
      .text("pad_token", "auto", "Token of padding; auto: the tokenizer's [PAD] or <pad>");
}

}  // namespace

FLEET_SOURCE(masked_text) {
  def.schema = [](bool) {
    return text_files_key(
        "Files, folders or patterns: plain text (one document; with data.sentences=lines "
        "several), or JSON lines (.jsonl), where a line is a document; with .gz, compressed");
  };
  def.shared = masked_text_keys;
  def.divides = true;
  declare_text_files(&def);
  def.describe = [](const Settings& split, SourceContext* context) {
    check_masked_keys(*context->data);
    if (context->train) {
      const JobTokenizer opened = open_job_tokenizer(*context);
      mask_rules(*context, opened, specials_of(*context, opened));
    }
    check_text_paths(split, *context);
  };
  def.columns = [](const Settings&, const SourceContext& context) {
    return masked_columns(*context.data);
  };
  def.open = open_masked_text;
}

}  // namespace fleet::data
