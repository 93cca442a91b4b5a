// Rows of tables: JSON lines (.jsonl, .ndjson), values between tabs (.tsv) or commas (.csv), and
// plain lines (.txt). Each ending may be followed by .gz. Internal to data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fleet::data {

struct TableRow {
  int64_t line = 0;                 // where it begins, from 1
  std::vector<std::string> fields;  // a value for each wanted column
  std::string wrong;                // why it cannot be used; "": it can, and `fields` is complete
};

struct TableRequest {
  // Keys of JSON lines, or names in the first line of a table; numbers from 1 without such a line.
  std::vector<std::string> columns;
  bool header = true;  // the first line of .tsv and .csv files names the columns
  std::string keys;    // those of a job file that name columns, for a message
};

// Calls `take` with each row of the file; skips empty lines. Values between tabs are taken as they
// are, with their quotes, as in GLUE's files; those between commas follow RFC 4180: a field in
// quotes may have commas, line ends and doubled quotes. Numbers and truth values of JSON count as
// their text. A plain line is the value of the only wanted column.
// kUsage, at the file, for another ending, or if its first line does not name a wanted column;
// kNotFound, kIo and kUsage as text::CorpusText.
void read_table(const std::string& path, const TableRequest& request,
                const std::function<void(TableRow)>& take);

// Whether read_table() reads files of this name.
bool is_table_name(const std::string& path);

}  // namespace fleet::data
