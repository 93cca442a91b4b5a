// Texts, or pairs of texts, with a class each: tables and JSON lines, such as GLUE's files. Tokens
// are made when the source is opened.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/labelled_texts.h"

namespace fleet::data {
namespace {

bool is_number(const std::string& label) {
  long long number = 0;  // NOLINT(runtime/int): type of parse_int()
  return parse_int(label, &number);
}

class LabelledTexts : public TextSamples {
 public:
  LabelledTexts(OpenedTexts texts, std::vector<int64_t> labels, int64_t length,
                std::vector<std::string> names)
      : TextSamples(std::move(texts), length),
        labels_(std::move(labels)),
        names_(std::move(names)) {}

  static std::vector<Column> columns_of(int64_t length) {
    std::vector<Column> columns = encoder_columns(length);
    columns.push_back({"label", DType::kInt64, {}});
    return columns;
  }
  std::vector<Column> columns() const override { return columns_of(length_); }
  int64_t label(int64_t index) const override { return labels_[index]; }
  std::vector<std::string> class_names() const override { return names_; }

 private:
  const std::vector<int64_t> labels_;
  const std::vector<std::string> names_;
};

// The classes of a data set.
struct LabelNames {
  std::vector<std::string> names;  // empty: classes have only numbers
  bool numbered = false;           // labels in the files are numbers of classes
};

// The different labels of the training data, sorted.
std::set<std::string> training_labels(const Settings& split, const SourceContext& context) {
  std::vector<std::string> words = split.texts("file");
  if (context.train_split && !context.train_split->texts("file").empty()) {
    words = context.train_split->texts("file");
  }
  std::set<std::string> found;
  for (const TextRow& row :
       read_text_rows(words, context.root, text_columns(*context.data, true), "data.train.file")) {
    if (row.wrong.empty() && !row.labels[0].empty()) found.insert(row.labels[0]);
  }
  return found;
}

// With names in the job, an evaluation need not have the training data: then its own labels.
std::set<std::string> labels_beside_names(const Settings& split, SourceContext context) {
  try {
    return training_labels(split, context);
  } catch (const Error&) {
    if (!context.train_split) throw;
  }
  context.train_split = nullptr;
  return training_labels(split, context);
}

std::vector<std::string> shown_labels(const std::set<std::string>& labels) {
  std::vector<std::string> shown;
  for (const std::string& label : labels) shown.push_back(shown_name(label, 40));
  return shown;
}

// Labels from 1 to the number of classes, or -1 and 1, are not class numbers: one class would have
// no row, and the rows of another label would be left out.
void check_numbers(const std::set<std::string>& found, int64_t classes) {
  bool zero = false, outside = false;
  for (const std::string& label : found) {
    long long number = 0;  // NOLINT(runtime/int): type of parse_int()
    parse_int(label, &number);
    zero |= number == 0;
    outside |= number < 0 || number >= classes;
  }
  if (zero || !outside) return;
  throw Error(ErrorCode::kUsage,
              "the training data have the labels " + join_first(shown_labels(found), 8) +
                  ", and classes are numbered from 0 to " + std::to_string(classes - 1),
              "data.train.file",
              "number the labels from 0, or list them in data.class_names as names");
}

// data.class_names, or the labels of the training data, sorted, unless these are numbers.
LabelNames label_names(const Settings& split, const SourceContext& context) {
  const std::vector<std::string> given = context.data->texts("class_names");
  const bool named = !given.empty();
  if (named && std::ranges::any_of(given, is_number)) return {given};
  const std::set<std::string> found =
      named ? labels_beside_names(split, context) : training_labels(split, context);
  if (std::ranges::all_of(found, is_number)) {
    if (context.classes > 0 && !found.empty()) check_numbers(found, context.classes);
    return {given, !found.empty()};
  }
  if (named) return {given};
  if (context.classes > 0 && std::ssize(found) != context.classes) {
    throw Error(ErrorCode::kUsage,
                "the training data have " + counted(std::ssize(found), "label") + " (" +
                    join_first(shown_labels(found), 8) + "), and model.num_classes is " +
                    std::to_string(context.classes),
                "model.num_classes",
                "set it to the number of classes, or name all classes in data.class_names");
  }
  return {{found.begin(), found.end()}};
}

std::unique_ptr<Source> open_labelled(const Settings& split, const SourceContext& context) {
  if (split.texts("file").empty()) {
    return no_test_data(context, context.train ? "data.train.file" : "data.test.file");
  }
  check_text_paths(split, context);
  auto [names, numbered] = label_names(split, context);
  std::map<std::string, int64_t> numbers;
  for (size_t i = 0; i < names.size(); ++i) numbers[names[i]] = static_cast<int64_t>(i);
  const auto number_of = [&numbers, &context, by_number = numbered](const std::string& label) {
    if (const auto found = numbers.find(label); found != numbers.end()) return found->second;
    long long number = -1;  // NOLINT(runtime/int): type of parse_int()
    if (!by_number || !parse_int(label, &number)) return int64_t{-1};
    const bool outside = context.classes > 0 && number >= context.classes;
    return number < 0 || outside ? int64_t{-1} : static_cast<int64_t>(number);
  };
  OpenedTexts opened = open_texts(split, context, [&](TextRow& row) {
    const std::string& label = row.labels[0];
    if (label.empty()) {
      row.wrong = "the label is empty";
    } else if (number_of(label) < 0) {
      row.wrong = "the label '" + shown_name(label, 100) + "' is not a class" +
                  (context.train ? "" : " of the training");
    }
  });
  std::vector<int64_t> labels;
  for (TextRow& row : opened.rows) {
    labels.push_back(number_of(row.labels[0]));
    row.labels.clear();
  }
  return std::make_unique<LabelledTexts>(std::move(opened), std::move(labels),
                                         context.data->integer("sequence_length"),
                                         std::move(names));
}

}  // namespace

FLEET_SOURCE(labelled_text) {
  def.schema = [](bool) { return text_file_keys(); };
  def.shared = [] {
    return text_row_keys().texts(
        "label_column", {"label"},
        "Column of the class, or key of it in JSON lines: a text, or a number from 0");
  };
  def.has_classes = true;
  declare_text_files(&def);
  def.describe = [](const Settings& split, SourceContext* context) {
    if (context->data->texts("label_column").size() != 1) {
      throw Error(ErrorCode::kUsage, "a text has one class", "data.label_column",
                  "name one column, or set data.source to scored_text for numbers");
    }
    describe_text_files(split, context);
  };
  def.columns = [](const Settings&, const SourceContext& context) {
    return LabelledTexts::columns_of(context.data->integer("sequence_length"));
  };
  def.open = open_labelled;
  def.unlabelled = unlabelled_texts;
  def.drops_rows = true;
}

}  // namespace fleet::data
