#include "data/table_file.h"

#include <algorithm>
#include <optional>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "text/corpus.h"

namespace fleet::data {
namespace {

enum class Format { kJson, kTabs, kCommas, kLines };

std::optional<Format> format_of(const std::string& path) {
  std::string name = lower_case(path);
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return Format::kJson;
  if (name.ends_with(".tsv")) return Format::kTabs;
  if (name.ends_with(".csv")) return Format::kCommas;
  if (name.ends_with(".txt")) return Format::kLines;
  return std::nullopt;
}

// The text of the next line, without its end; advances `rest` and `line`.
std::string_view next_line(std::string_view* rest, int64_t* line) {
  const size_t end = std::min(rest->find('\n'), rest->size());
  std::string_view text = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  if (text.ends_with('\r')) text.remove_suffix(1);
  ++*line;
  return text;
}

// Cuts tables into rows of fields.
class RowReader {
 public:
  RowReader(std::string_view text, char separator, bool quotes)
      : rest_(text), separator_(separator), quotes_(quotes) {}

  // false at the end. Leaves *wrong empty for a row that is well formed.
  bool next(std::vector<std::string>* fields, int64_t* line, std::string* wrong) {
    while (!rest_.empty()) {
      fields->clear();
      wrong->clear();
      *line = line_ + 1;
      if (quotes_) {
        read_quoted(fields, wrong);
      } else {
        read_separated(fields);
      }
      if (!wrong->empty() || fields->size() > 1 || (fields->size() == 1 && !(*fields)[0].empty())) {
        return true;
      }
    }
    return false;
  }

 private:
  void read_separated(std::vector<std::string>* fields) {
    std::string_view text = next_line(&rest_, &line_);
    for (size_t end = 0; end != text.npos; text.remove_prefix(std::min(end + 1, text.size()))) {
      end = text.find(separator_);
      fields->emplace_back(text.substr(0, end));
    }
  }

  void read_quoted(std::vector<std::string>* fields, std::string* wrong) {
    for (bool more = true; more;) more = read_field(&fields->emplace_back(), wrong);
  }

  // Whether another field of the row follows.
  bool read_field(std::string* field, std::string* wrong) {
    if (rest_.starts_with('"')) {
      rest_.remove_prefix(1);
      const int64_t first = line_;
      if (!read_to_quote(field)) {
        *wrong = "a quote is not closed, and the value has all " +
                 counted(line_ - first + (field->ends_with('\n') ? 0 : 1), "line") +
                 " to the end of the file";
      }
    }
    const char ends[] = {separator_, '\n', 0};
    const size_t end = std::min(rest_.find_first_of(ends), rest_.size());
    const bool more = end < rest_.size() && rest_[end] == separator_;
    std::string_view tail = rest_.substr(0, end);
    if (!more && tail.ends_with('\r')) tail.remove_suffix(1);
    *field += tail;
    if (!more) ++line_;
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return more;
  }

  // Reads behind an opening quote; false if no quote closes the field.
  bool read_to_quote(std::string* field) {
    for (;;) {
      const size_t quote = rest_.find('"');
      const std::string_view part = rest_.substr(0, quote);
      line_ += std::ranges::count(part, '\n');
      *field += part;
      rest_.remove_prefix(std::min(part.size() + 1, rest_.size()));
      if (quote == rest_.npos) return false;
      if (!rest_.starts_with('"')) return true;
      *field += '"';
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
  const char separator_;
  const bool quotes_;
  int64_t line_ = 0;  // lines that are read
};

size_t column_of(const std::vector<std::string>& names, const std::string& wanted,
                 const std::string& path, const std::string& keys) {
  const auto found = std::ranges::find(names, wanted);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  throw Error(ErrorCode::kUsage,
              "the first line names no column '" + wanted + "', but " + join_first(names, 12), path,
              "correct " + keys + ", or set data.header to false");
}

size_t column_number(const std::string& wanted, const std::string& path) {
  long long number = 0;  // NOLINT(runtime/int): type of parse_int()
  if (parse_int(wanted, &number) && number >= 1 && number <= 1'000'000) {
    return static_cast<size_t>(number - 1);
  }
  throw Error(ErrorCode::kUsage, "the column '" + wanted + "' is not a number", path,
              "without a header (data.header), name columns by their numbers from 1");
}

void read_rows(std::string_view text, const std::string& path, bool tabs,
               const TableRequest& request, const std::function<void(TableRow)>& take) {
  RowReader reader(text, tabs ? '\t' : ',', !tabs);
  std::vector<std::string> fields;
  std::vector<size_t> wanted;
  TableRow row;
  size_t width = 0;
  if (request.header) {
    if (!reader.next(&fields, &row.line, &row.wrong)) {
      throw Error(ErrorCode::kUsage, "the table is empty", path,
                  "write a line with the names of the columns");
    }
    width = fields.size();
  }
  for (const std::string& name : request.columns) {
    wanted.push_back(request.header ? column_of(fields, name, path, request.keys)
                                    : column_number(name, path));
  }
  while (reader.next(&fields, &row.line, &row.wrong)) {
    if (width == 0) width = fields.size();
    row.fields.clear();
    if (row.wrong.empty() && fields.size() != width) {
      row.wrong = counted(std::ssize(fields), "field") + ", and the first line has " +
                  std::to_string(width);
    }
    for (const size_t column : wanted) {
      if (!row.wrong.empty()) break;
      if (column >= fields.size()) {
        row.wrong = "there is no column " + std::to_string(column + 1);
      } else {
        row.fields.push_back(fields[column]);
      }
    }
    take(row);
  }
}

// The text of a JSON value; nullopt for null, lists and objects.
std::optional<std::string> text_of(const Json* value) {
  if (!value || value->is_null() || value->is_array() || value->is_object()) return std::nullopt;
  return value->is_string() ? value->get<std::string>() : value->dump();
}

void read_json_lines(std::string_view text, const TableRequest& request,
                     const std::function<void(TableRow)>& take) {
  TableRow row;
  while (!text.empty()) {
    const std::string_view line = trim(next_line(&text, &row.line));
    if (line.empty()) continue;
    row.fields.clear();
    const std::optional<Json> json = Json::try_parse(line);
    row.wrong = json && json->is_object() ? "" : "the line is not a JSON object";
    for (const std::string& name : request.columns) {
      if (!row.wrong.empty()) break;
      const auto value = text_of(json->find(name));
      if (value) {
        row.fields.push_back(*value);
      } else {
        row.wrong = "it has no text or number '" + name + "'";
      }
    }
    take(row);
  }
}

void read_lines(std::string_view text, const std::string& path, const TableRequest& request,
                const std::function<void(TableRow)>& take) {
  if (request.columns.size() != 1) {
    throw Error(ErrorCode::kUsage, "a plain text has no columns", path,
                "use a .tsv, .csv or .jsonl file for texts with labels, or for two texts");
  }
  TableRow row;
  while (!text.empty()) {
    const std::string_view line = next_line(&text, &row.line);
    if (trim(line).empty()) continue;
    row.fields = {std::string(line)};
    take(row);
  }
}

}  // namespace

bool is_table_name(const std::string& path) { return format_of(path).has_value(); }

void read_table(const std::string& path, const TableRequest& request,
                const std::function<void(TableRow)>& take) {
  const std::optional<Format> format = format_of(path);
  if (!format) {
    throw Error(ErrorCode::kUsage, "the name does not tell the format", path,
                "let it end in .jsonl, .tsv, .csv or .txt");
  }
  const text::CorpusText file({.path = path,
                               .compressed = lower_case(path).ends_with(".gz"),
                               .bytes = open_regular_file(path).size});
  const std::string_view text = file.bytes().substr(file.mark());
  switch (*format) {
    case Format::kJson:
      return read_json_lines(text, request, take);
    case Format::kLines:
      return read_lines(text, path, request, take);
    case Format::kTabs:
    case Format::kCommas:
      return read_rows(text, path, *format == Format::kTabs, request, take);
  }
}

}  // namespace fleet::data
