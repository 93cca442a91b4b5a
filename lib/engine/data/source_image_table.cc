// Images named by a table (.csv, .tsv, .jsonl) with their labels in other columns: one class, a
// column of 0 and 1 or of a share for each class, several names in one field, or numbers.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include "base/counted.h"
#include "base/error.h"
#include "base/number_text.h"
#include "base/regular_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/images_with_labels.h"
#include "data/images_with_values.h"
#include "data/table_file.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

enum class Labels { kOne, kColumns, kNames, kShares, kNumbers };

struct TableKeys {
  TableRequest request;   // the image's column, then those of labels
  std::string separator;  // between names in one field
  std::string ending;     // appended to names without an ending
  Labels labels = Labels::kOne;
};

TableKeys keys_of(const Settings& data) {
  TableKeys keys{.request = {.columns = {data.text("image_column")},
                             .header = data.boolean("header"),
                             .keys = "data.image_column or data.label_column"},
                 .separator = data.text("label_separator"),
                 .ending = data.text("image_ending")};
  const std::vector<std::string> labels = data.texts("label_column");
  if (labels.empty()) {
    throw Error(ErrorCode::kUsage, "no column has labels", "data.label_column", "name one or more");
  }
  if (labels.size() > 1 && !keys.separator.empty()) {
    throw Error(ErrorCode::kUsage, "several columns, each with a list of names",
                "data.label_separator", "remove it, or name one column in data.label_column");
  }
  keys.request.columns.insert(keys.request.columns.end(), labels.begin(), labels.end());
  if (labels.size() > 1) keys.labels = Labels::kColumns;
  if (!keys.separator.empty()) keys.labels = Labels::kNames;
  const std::string& type = data.text("label_type");
  if (type == "class") return keys;
  if (!keys.separator.empty()) {
    throw Error(ErrorCode::kUsage, "separates names of classes, and data.label_type is " + type,
                "data.label_separator", "remove it");
  }
  keys.labels = type == "share" ? Labels::kShares : Labels::kNumbers;
  return keys;
}

std::vector<std::string> names_in(const std::string& field, const TableKeys& keys) {
  if (keys.labels != Labels::kNames) return {field};
  std::vector<std::string> names;
  for (std::string_view rest = field;;) {
    const size_t end = std::min(rest.find(keys.separator), rest.size());
    const std::string_view name = trim(rest.substr(0, end));
    if (!name.empty()) names.emplace_back(name);
    if (end == rest.size()) return names;
    rest.remove_prefix(end + keys.separator.size());
  }
}

std::string table_path(const Settings& split, const SourceContext& context) {
  const std::string given = split.text("file");
  std::error_code ignored;  // such as a name that is too long
  return fs::exists(given, ignored) ? given : under_root(context.root, given);
}

void refuse_row(const std::string& what, const std::string& where, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, where, next);
}

// Calls body with the fields of each row and its place and line.
template <typename Body>
void for_each_row(const std::string& table, const TableKeys& keys, Body body) {
  read_table(table, keys.request, [&](const TableRow& row) {
    const std::string where = table + ":" + std::to_string(row.line);
    if (!row.wrong.empty()) refuse_row(row.wrong, where, "correct the row");
    body(row.fields, where, row.line);
  });
}

// "3", or "3.0", as programs write whole numbers in columns with gaps.
bool parse_label(const std::string& name, int64_t* number) {
  long long value = 0;  // NOLINT(runtime/int): type of parse_int()
  const size_t point = std::min(name.find('.'), name.size());
  const bool whole = name.find_first_not_of('0', point + 1) == std::string::npos;
  if (point + 1 == name.size() || !whole || !parse_int(name.substr(0, point), &value)) return false;
  *number = value;
  return true;
}

bool is_number(const std::string& name) {
  int64_t number = 0;
  return parse_label(name, &number);
}

// The class of each label.
class Classes {
 public:
  // data.class_names, or the columns of labels, or the labels of the training table, sorted;
  // numbers stand for themselves.
  Classes(const Settings& split, const SourceContext& context, const TableKeys& keys)
      : count_(context.classes) {
    if (keys.labels == Labels::kNumbers) return;  // no classes
    if (keys.labels == Labels::kOne) ignored_ = context.ignored_label;
    names_ = context.data->texts("class_names");
    bool numbered = false;
    if (keys.labels == Labels::kColumns || keys.labels == Labels::kShares) {
      const auto columns = std::ssize(keys.request.columns) - 1;
      if (count_ > 0 && columns != count_) refuse_count(columns, "column");
      if (names_.empty() && keys.request.header)
        names_.assign(keys.request.columns.begin() + 1, keys.request.columns.end());
    } else if (names_.empty()) {
      names_ = found_names(split, context, keys);
    } else {  // they may name numbers
      numbered =
          std::ranges::none_of(names_, is_number) && found_names(split, context, keys).empty();
    }
    if (count_ > 0 && !names_.empty() && std::ssize(names_) != count_) {
      refuse_count(std::ssize(names_), "label");
    }
    if (numbered) return;
    for (size_t i = 0; i < names_.size(); ++i) numbers_[names_[i]] = static_cast<int64_t>(i);
  }

  const std::vector<std::string>& names() const { return names_; }

  int64_t number_of(const std::string& label, const std::string& where) const {
    if (const auto found = numbers_.find(label); found != numbers_.end()) return found->second;
    int64_t number = -1;
    const bool is_known = parse_label(label, &number);
    const int64_t limit = names_.empty() ? count_ : std::ssize(names_);
    if (is_known && ignored_ && number == *ignored_) return number;
    if (numbers_.empty() && is_known && number >= 0 && (limit == 0 || number < limit)) {
      return number;
    }
    refuse_row(label.empty() ? "the label is empty"
                             : "the label '" + shown_name(label, 100) + "' is not a class",
               where, "correct the row, or name all classes in data.class_names");
    return -1;
  }

 private:
  static std::vector<std::string> found_names(const Settings& split, const SourceContext& context,
                                              const TableKeys& keys) {
    const bool trained = context.train_split && !context.train_split->text("file").empty();
    const std::string table = table_path(trained ? *context.train_split : split, context);
    std::set<std::string> found;
    for_each_row(table, keys,
                 [&](const std::vector<std::string>& fields, const std::string&, int64_t) {
                   for (const std::string& name : names_in(fields[1], keys)) {
                     if (!name.empty()) found.insert(name);
                   }
                 });
    if (std::ranges::all_of(found, is_number)) return {};
    return {found.begin(), found.end()};
  }

  void refuse_count(int64_t count, const char* unit) const {
    std::vector<std::string> shown;
    for (const std::string& name : names_) shown.push_back(shown_name(name, 40));
    throw Error(ErrorCode::kUsage,
                "the table has " + counted(count, unit) +
                    (shown.empty() ? "" : " (" + join_first(shown, 8) + ")") +
                    ", and model.num_classes is " + std::to_string(count_),
                "model.num_classes",
                "set it to the number of classes, or name all classes in data.class_names");
  }

  const int64_t count_;
  std::optional<int64_t> ignored_;  // a label that stands for no class
  std::vector<std::string> names_;
  std::map<std::string, int64_t> numbers_;
};

// The classes of a row for the task multi_label.
void add_targets(const std::vector<std::string>& fields, const TableKeys& keys,
                 const Classes& classes, const std::string& where, std::vector<int64_t>* labels) {
  if (keys.labels == Labels::kNames) {
    for (const std::string& name : names_in(fields[1], keys)) {
      labels->push_back(classes.number_of(name, where));
    }
    return;
  }
  for (size_t i = 1; i < fields.size(); ++i) {
    const std::string& field = fields[i];
    if (field == "1" || field == "1.0") {
      labels->push_back(static_cast<int64_t>(i) - 1);
    } else if (field != "0" && field != "0.0") {
      refuse_row("'" + shown_name(field, 100) + "' in the column " + keys.request.columns[i] +
                     " is neither 0 nor 1",
                 where, "correct the row, or name one column in data.label_column");
    }
  }
}

// Files, and numbers or shares in the order of the files.
struct LabelledImages {
  LabelledFiles files;
  std::vector<float> values;
};

// The numbers of a row. Shares of classes sum up to 1.
void add_values(const std::vector<std::string>& fields, const TableKeys& keys,
                const std::string& where, LabelledImages* images) {
  constexpr double kRounding = 1e-2;
  const bool shares = keys.labels == Labels::kShares;
  std::vector<double> values;
  for (size_t i = 1; i < fields.size(); ++i) {
    double value = 0;
    const bool is_number = parse_double(std::string(trim(fields[i])), &value) &&
                           std::isfinite(static_cast<float>(value));
    if (!is_number || (shares && value < 0)) {
      refuse_row("'" + shown_name(fields[i], 100) + "' in the column " + keys.request.columns[i] +
                     (shares ? " is not a share of 0 or more" : " is not a number"),
                 where, "correct the row, or data.label_column");
    }
    values.push_back(value);
  }
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (shares && std::abs(sum - 1) > kRounding) {
    refuse_row("the shares of the classes sum up to " + format_printf("%.4g", sum) + ", not to 1",
               where, "divide the row by its sum");
  }
  for (const double value : values) {
    images->values.push_back(static_cast<float>(shares ? value / sum : value));
  }
}

// As for lists: a missing file must not end the job hours later.
void check_listed_file(const std::string& path, const std::string& where) {
  std::error_code unknown;
  const fs::file_status status = fs::status(path, unknown);
  if (fs::is_regular_file(status)) return;
  refuse_row("the file '" + shown_path(path) + "' " +
                 (fs::exists(status) ? "is not a regular file" : "does not exist"),
             where, "correct the row, or set data.root or data.image_ending");
}

// Refuses a file whose rows disagree. lines: of the rows of all.
void check_repeated_files(const LabelledImages& images, const std::vector<int64_t>& lines,
                          const std::string& table, const TableKeys& keys) {
  const LabelledFiles& all = images.files;
  std::vector<size_t> order(all.files.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {},
                           [&](size_t i) -> const std::string& { return all.files[i].path; });
  const auto targets = [&](size_t i) {
    return std::multiset(all.labels.begin() + all.begins[i],
                         all.labels.begin() + all.begins[i + 1]);
  };
  for (size_t k = 1; k < order.size(); ++k) {
    const size_t first = order[k - 1], second = order[k];
    const ImageFile &one = all.files[first], &other = all.files[second];
    if (one.path != other.path) continue;
    const auto values = [&](size_t i) {
      const size_t count = images.values.size() / all.files.size();
      return std::vector(images.values.begin() + i * count,
                         images.values.begin() + (i + 1) * count);
    };
    const bool same = one.label == other.label && targets(first) == targets(second);
    if (same && values(first) == values(second)) continue;
    refuse_row("the file '" + shown_path(other.path) + "' has another label in line " +
                   std::to_string(lines[first]),
               table + ":" + std::to_string(lines[second]),
               keys.labels == Labels::kOne
                   ? "keep one row of a file, or train the task multi_label with all labels of a "
                     "file in one row (data.label_separator)"
                   : "write all labels of a file in one row");
  }
}

// The labels of a row, which belongs to the file added last.
void add_labels(const std::vector<std::string>& fields, const TableKeys& keys,
                const Classes& classes, const std::string& where, LabelledImages* images) {
  LabelledFiles& all = images->files;
  if (keys.labels == Labels::kShares || keys.labels == Labels::kNumbers) {
    add_values(fields, keys, where, images);
    const std::span<const float> own = std::span(images->values).last(fields.size() - 1);
    if (keys.labels == Labels::kShares) {
      all.files.back().label = std::ranges::max_element(own) - own.begin();
    }
  } else if (keys.labels == Labels::kOne) {
    all.files.back().label = classes.number_of(fields[1], where);
  } else {
    add_targets(fields, keys, classes, where, &all.labels);
  }
  all.begins.push_back(all.labels.size());
}

std::unique_ptr<Source> make_source(LabelledImages images, const TableKeys& keys,
                                    const Classes& classes, const SourceContext& context) {
  std::vector<std::string> names;
  for (const std::string& name : classes.names()) names.push_back(shown_path(name));
  LabelledFiles& all = images.files;
  switch (keys.labels) {
    case Labels::kOne:
      return std::make_unique<ImageFiles>(std::move(all.files), std::move(names));
    case Labels::kShares:
    case Labels::kNumbers:
      return std::make_unique<ImagesWithValues>(std::move(all.files), std::move(images.values),
                                                keys.labels == Labels::kShares, std::move(names));
    default:
      return std::make_unique<ImagesWithLabels>(std::move(all), context.classes, std::move(names));
  }
}

std::unique_ptr<Source> open_image_table(const Settings& split, const SourceContext& given) {
  if (split.text("file").empty()) {
    return no_test_data(given, given.train ? "data.train.file" : "data.test.file");
  }
  constexpr size_t kFilesChecked = 100000;
  const TableKeys keys = keys_of(*given.data);
  const std::string table = table_path(split, given);
  const Classes classes(split, given, keys);
  const std::string folder =
      given.root.empty() ? fs::path(table).parent_path().string() : given.root;
  LabelledImages images{.files = {.files = {}, .labels = {}, .begins = {0}}, .values = {}};
  LabelledFiles& all = images.files;
  std::vector<int64_t> lines;
  for_each_row(table, keys,
               [&](const std::vector<std::string>& fields, const std::string& where, int64_t line) {
                 std::string name(trim(fields[0]));
                 if (name.empty()) refuse_row("the row names no file", where, "correct the row");
                 if (!keys.ending.empty() && !is_image_name(name)) name += keys.ending;
                 const std::string path = under_root(folder, name);
                 if (all.files.size() < kFilesChecked) check_listed_file(path, where);
                 all.files.push_back({path, 0});
                 add_labels(fields, keys, classes, where, &images);
                 lines.push_back(line);
               });
  if (all.files.empty()) {
    throw Error(ErrorCode::kUsage, "the table names no image", table, "write a row for each image");
  }
  check_repeated_files(images, lines, table, keys);
  return make_source(std::move(images), keys, classes, given);
}

}  // namespace

FLEET_SOURCE(image_table) {
  def.schema = [](bool) {
    return Schema()
        .text("file", "",
              "Table of images (.csv, .tsv or .jsonl); relative paths are looked up as they are, "
              "then below data.root")
        .as_path();
  };
  def.shared = [] {
    return Schema()
        .text("image_column", "file",
              "Column with the images' paths, relative to data.root, or to the table's folder if "
              "that is not set")
        .text("image_ending", "",
              "Ending of the files, such as \".jpg\", if the table leaves it out")
        .texts("label_column", {"label"},
               "Column of the class: a name, or a number from 0. Several columns, each with 0 or "
               "1, for the task multi_label: the classes are the columns, in this order")
        .choice("label_type", "class", {"class", "share", "number"},
                "What data.label_column has. class: classes, by name or number; share: of each "
                "class a column with its share of the label, summing up to 1, for the task "
                "image_classification; number: numbers to predict, for the task regression")
        .text("label_separator", "",
              "What separates several class names in data.label_column, for the task multi_label, "
              "such as \" \" or \"|\"; \"\": the column has one class")
        .boolean("header", true,
                 "Whether the first line names the columns; if not, columns are numbers from 1");
  };
  def.has_classes = true;
  def.names_data = [](const Settings& split) { return !split.text("file").empty(); };
  def.columns = [](const Settings&, const SourceContext& context) {
    const TableKeys keys = keys_of(*context.data);
    if (keys.labels == Labels::kOne) return Source::labelled_images();
    const bool shares = keys.labels == Labels::kShares;
    if (!shares && keys.labels != Labels::kNumbers) {
      return ImagesWithLabels::columns_of(context.classes);
    }
    return ImagesWithValues::columns_of(std::ssize(keys.request.columns) - 1, shares);
  };
  def.column_keys = "data.label_column, data.label_type and data.label_separator";
  def.open = open_image_table;
}

}  // namespace fleet::data
