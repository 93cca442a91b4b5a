// Tables for human readers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fleet {

// One line per row; columns are as wide as their widest cell and two blanks apart, with `indent`
// before each line. Widths are columns of a terminal: some characters take two.
std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         const std::string& indent = {});

// A column of a table that must fit a terminal.
struct TableColumn {
  std::string title;
  int importance = 0;  // the column with the lowest one is left out first
  size_t least = 0;    // its cells may be cut to this width; 0: they are not cut
  bool right = false;  // aligned at the right, as numbers are
  bool path = false;   // cut at the front
  std::string style;   // the style of its title
};

struct TableCell {
  std::string text;
  std::string style;  // parameters of an SGR sequence, such as "1;31"; "": none
};

struct FittedTable {
  std::vector<std::string> lines;  // the titles, then a line for each row
  std::vector<size_t> columns;     // indices of the columns that fit
};

// Like format_table(), with lines of at most `width` columns (0: any). In a table that is too wide,
// cells are cut, those of the least important columns first; if that does not suffice, columns are
// left out. Each row has a cell for each column.
FittedTable fitted_table(const std::vector<TableColumn>& columns,
                         const std::vector<std::vector<TableCell>>& rows, size_t width);

}  // namespace fleet
