#include "base/text_table.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/terminal_text.h"

namespace fleet {
namespace {

constexpr size_t kGap = 2;

// A line that grows by cells; blanks at its end are left out.
class Line {
 public:
  explicit Line(std::string indent = {}) : text_(std::move(indent)) {}
  void skip(size_t columns) { blanks_ += columns; }
  void add(const std::string& text, const std::string& style = {}) {
    if (text.empty()) return;
    text_ += std::string(blanks_, ' ');
    blanks_ = 0;
    text_ += style.empty() ? text : "\x1b[" + style + "m" + text + "\x1b[0m";
  }
  std::string take() {
    text_.resize(text_.find_last_not_of(' ') + 1);
    return std::move(text_);
  }

 private:
  std::string text_;
  size_t blanks_ = 0;
};

// The columns that are left, and their widths.
class Layout {
 public:
  Layout(const std::vector<TableColumn>& columns, const std::vector<std::vector<TableCell>>& rows)
      : columns_(columns), kept_(columns.size()) {
    std::iota(kept_.begin(), kept_.end(), size_t{0});
    for (size_t i = 0; i < columns.size(); ++i) {
      widths_.push_back(columns_of_text(columns[i].title));
      for (const auto& row : rows) {
        widths_[i] = std::max(widths_[i], columns_of_text(row[i].text));
      }
    }
  }

  void fit(size_t width) {
    while (total() > width) {
      const size_t over = total() - width;
      if (slack() >= over) return cut_cells(over);
      if (kept_.size() == 1) {
        widths_[kept_[0]] = width;
        return;
      }
      kept_.erase(std::ranges::min_element(kept_, {}, importance_));
    }
  }

  std::string line(const auto& cell_of) const {
    Line line;
    for (const size_t i : kept_) {
      if (i != kept_.front()) line.skip(kGap);
      const TableCell cell = cell_of(i);
      const std::string text = columns_[i].path ? cut_front_to_columns(cell.text, widths_[i])
                                                : cut_to_columns(cell.text, widths_[i]);
      const size_t rest = widths_[i] - columns_of_text(text);
      if (columns_[i].right) line.skip(rest);
      line.add(text, cell.style);
      if (!columns_[i].right) line.skip(rest);
    }
    return line.take();
  }

  const std::vector<size_t>& kept() const { return kept_; }

 private:
  size_t total() const {
    size_t sum = kept_.empty() ? 0 : kGap * (kept_.size() - 1);
    for (const size_t i : kept_) sum += widths_[i];
    return sum;
  }
  size_t slack(size_t i) const {
    const size_t least = columns_[i].least;
    return least > 0 && widths_[i] > least ? widths_[i] - least : 0;
  }
  size_t slack() const {
    size_t sum = 0;
    for (const size_t i : kept_) sum += slack(i);
    return sum;
  }
  void cut_cells(size_t over) {
    std::vector<size_t> order = kept_;
    std::ranges::stable_sort(order, {}, importance_);
    for (const size_t i : order) {
      const size_t cut = std::min(over, slack(i));
      widths_[i] -= cut;
      over -= cut;
    }
  }

  const std::vector<TableColumn>& columns_;
  const std::function<int(size_t)> importance_ = [this](size_t i) {
    return columns_[i].importance;
  };
  std::vector<size_t> kept_, widths_;  // widths: one per column, hidden ones included
};

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         const std::string& indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of_text(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    Line line(indent);
    for (size_t i = 0; i < row.size(); ++i) {
      line.add(row[i]);
      line.skip(widths[i] - columns_of_text(row[i]) + kGap);
    }
    text += line.take() + "\n";
  }
  return text;
}

FittedTable fitted_table(const std::vector<TableColumn>& columns,
                         const std::vector<std::vector<TableCell>>& rows, size_t width) {
  Layout layout(columns, rows);
  if (width > 0) layout.fit(width);
  FittedTable table{{}, layout.kept()};
  table.lines.push_back(layout.line([&](size_t i) {
    return TableCell{columns[i].title, columns[i].style};
  }));
  for (const auto& row : rows) {
    table.lines.push_back(layout.line([&](size_t i) { return row[i]; }));
  }
  return table;
}

}  // namespace fleet
