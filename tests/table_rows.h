// Tables for people, read back: their cells by the title of the column.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace fleet {

using TableRow = std::map<std::string, std::string>;

// Where the characters of the line begin; the last element is its end.
inline std::vector<size_t> character_offsets(std::string_view line) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < line.size(); ++at) {
    if ((static_cast<unsigned char>(line[at]) & 0xc0) != 0x80) offsets.push_back(at);
  }
  offsets.push_back(line.size());
  return offsets;
}

// The rows below the first line, whose titles are two blanks or more apart and begin where the
// cells below them do (format_table()). An empty cell is "".
inline std::vector<TableRow> table_rows(std::string_view table) {
  std::vector<std::string_view> lines;
  while (!table.empty()) {
    const size_t end = std::min(table.find('\n'), table.size());
    lines.push_back(table.substr(0, end));
    table.remove_prefix(std::min(end + 1, table.size()));
  }
  if (lines.empty()) return {};
  const std::string_view head = lines[0];
  std::vector<size_t> begins;
  for (size_t at = 0; at < head.size(); ++at) {
    const bool apart = at == 0 || (at >= 2 && head.substr(at - 2, 2) == "  ");
    if (apart && head[at] != ' ') begins.push_back(at);
  }
  std::vector<TableRow> rows;
  for (size_t line = 1; line < lines.size(); ++line) {
    const std::vector<size_t> offsets = character_offsets(lines[line]);
    const auto offset = [&](size_t character) {
      return offsets[std::min(character, offsets.size() - 1)];
    };
    TableRow& row = rows.emplace_back();
    for (size_t k = 0; k < begins.size(); ++k) {
      const size_t next = k + 1 < begins.size() ? begins[k + 1] : std::string_view::npos;
      const size_t from = offset(begins[k]), to = offset(next);
      row[std::string(trim(head.substr(begins[k], next - begins[k])))] =
          trim(lines[line].substr(from, to - from));
    }
  }
  return rows;
}

}  // namespace fleet
