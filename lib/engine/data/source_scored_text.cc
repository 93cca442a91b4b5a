// Texts, or pairs of texts, with one or several numbers each, such as the similarities of STS-B:
// tables and JSON lines. Tokens are made when the source is opened.
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/labelled_texts.h"

namespace fleet::data {
namespace {

class ScoredTexts : public TextSamples {
 public:
  ScoredTexts(OpenedTexts texts, std::vector<float> targets, int64_t length, int64_t count)
      : TextSamples(std::move(texts), length), targets_(std::move(targets)), count_(count) {}

  static std::vector<Column> columns_of(int64_t length, int64_t count) {
    std::vector<Column> columns = encoder_columns(length);
    columns.push_back({"targets", DType::kFloat32, {count}});
    return columns;
  }
  std::vector<Column> columns() const override { return columns_of(length_, count_); }
  void fill(int64_t index, uint64_t key, std::span<void* const> to) const override {
    TextSamples::fill(index, key, to);
    std::copy_n(targets_.data() + index * count_, count_, static_cast<float*>(to[4]));
  }

 private:
  const std::vector<float> targets_;
  const int64_t count_;
};

int64_t targets_of(const Settings& data) { return std::ssize(data.texts("label_column")); }

std::unique_ptr<Source> open_scored(const Settings& split, const SourceContext& context) {
  if (split.texts("file").empty()) {
    return no_test_data(context, context.train ? "data.train.file" : "data.test.file");
  }
  check_text_paths(split, context);
  OpenedTexts opened = open_texts(split, context, [](TextRow& row) {
    for (const std::string& label : row.labels) {
      double number = 0;
      if (parse_double(label, &number) && std::isfinite(static_cast<float>(number))) continue;
      row.wrong = "'" + shown_name(label, 100) + "' is not a number";
    }
  });
  std::vector<float> targets;
  for (TextRow& row : opened.rows) {
    for (const std::string& label : row.labels) {
      double number = 0;
      parse_double(label, &number);
      targets.push_back(static_cast<float>(number));
    }
    row.labels.clear();
  }
  return std::make_unique<ScoredTexts>(std::move(opened), std::move(targets),
                                       context.data->integer("sequence_length"),
                                       targets_of(*context.data));
}

}  // namespace

FLEET_SOURCE(scored_text) {
  def.schema = [](bool) { return text_file_keys(); };
  def.shared = [] {
    return text_row_keys().texts(
        "label_column", {"label"},
        "Columns of the numbers to predict, or keys of them in JSON lines: one or several");
  };
  declare_text_files(&def);
  def.describe = [](const Settings& split, SourceContext* context) {
    if (context->data->texts("label_column").empty()) {
      throw Error(ErrorCode::kUsage, "no column is named", "data.label_column",
                  "name the column of the number to predict");
    }
    describe_text_files(split, context);
  };
  def.columns = [](const Settings&, const SourceContext& context) {
    return ScoredTexts::columns_of(context.data->integer("sequence_length"),
                                   targets_of(*context.data));
  };
  def.open = open_scored;
  def.unlabelled = unlabelled_texts;
  def.drops_rows = true;
}

}  // namespace fleet::data
