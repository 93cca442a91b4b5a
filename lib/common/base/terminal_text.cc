#include "base/terminal_text.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/env.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr std::string_view kReset = "\033[0m";
constexpr size_t kTab = 8;

// Keeps the colours and weights of an SGR sequence's parameters; drops blinking and hidden text.
std::string shown_style(std::string_view parameters) {
  std::vector<std::string> kept;
  const std::vector<std::string> all = split(parameters, ';');
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == "5" || all[i] == "6" || all[i] == "8") continue;
    kept.push_back(all[i]);
    if (all[i] != "38" && all[i] != "48" && all[i] != "58") continue;
    // 38;5;N and 38;2;R;G;B
    const size_t arguments = i + 1 < all.size() && all[i + 1] == "2" ? 4 : 2;
    for (size_t end = std::min(i + arguments, all.size() - 1); i < end;) kept.push_back(all[++i]);
  }
  return join(kept, ";");
}

// The first parameter of a sequence, at least 1.
size_t count_of(std::string_view parameters) {
  long long count = 1;
  parse_int(parameters.substr(0, parameters.find(';')), &count);
  return static_cast<size_t>(std::clamp<long long>(count, 1, 1 << 16));
}

// Rows of cells, some of which later output overwrites.
class Screen : public TerminalSink {
 public:
  explicit Screen(bool colors) : colors_(colors) {}

  void character(std::string_view utf8, char32_t code) override {
    const int columns = columns_of(code);
    if (columns == 0) return combine(utf8);
    pad(column_);
    put({std::string(utf8), style_});
    if (columns == 2) put({{}, style_});
  }

  void control(char c) override {
    if (c == '\n') {
      if (++row_ == rows_.size()) rows_.emplace_back();
      column_ = 0;
    } else if (c == '\r') {
      column_ = 0;
    } else if (c == '\b') {
      column_ -= column_ > 0;
    } else {
      column_ = (column_ / kTab + 1) * kTab;
      pad(column_);
    }
  }

  void sequence(std::string_view parameters, char final) override {
    const size_t count = count_of(parameters);
    switch (final) {
      case 'A':
      case 'F':
        row_ -= std::min(count, row_);
        break;
      case 'B':
      case 'E':  // no scrolling, as on a terminal
        row_ = std::min(row_ + count, rows_.size() - 1);
        break;
      case 'C':
        column_ = std::min(column_ + count, kMaxColumns);
        break;
      case 'D':
        column_ -= std::min(count, column_);
        break;
      case 'G':
        column_ = std::min(count - 1, kMaxColumns);
        break;
      case 'J':
        return erase_below(parameters);
      case 'K':
        return erase_line(parameters);
      case 'm':
        return set_style(parameters);
      default:
        return;
    }
    if (final == 'E' || final == 'F') column_ = 0;
  }

  std::string text() const {
    std::string text;
    for (const std::vector<Cell>& row : rows_) text += (&row == &rows_[0] ? "" : "\n") + line(row);
    return text;
  }

 private:
  struct Cell {
    std::string text;  // empty: the second half of a wide character
    size_t style = 0;
  };
  static constexpr size_t kMaxColumns = 4096;     // limit for cursor movement
  static constexpr size_t kMaxPadding = 1 << 16;  // limit in cells, over all rows

  std::vector<Cell>& row() { return rows_[row_]; }

  void put(Cell cell) {
    if (column_ < row().size()) {
      split_wide(column_);
      split_wide(column_ + 1);
      row()[column_] = std::move(cell);
    } else {
      row().push_back(std::move(cell));
    }
    ++column_;
  }

  // Overwriting one half of a wide character: blanks replace both halves.
  void split_wide(size_t column) {
    if (column == 0 || column >= row().size() || !row()[column].text.empty()) return;
    row()[column].text = row()[column - 1].text = " ";
  }

  void pad(size_t columns) {
    if (columns <= row().size()) return;
    const size_t wanted = columns - row().size();
    const size_t had = std::min(wanted, kMaxPadding - padding_);
    padding_ += had;
    row().resize(row().size() + had, {" ", 0});
    column_ = std::min(column_, row().size());
  }

  void combine(std::string_view utf8) {
    constexpr size_t kMost = 32;  // bytes of a cell
    const size_t before = std::min(column_, row().size());
    if (before == 0) return;
    std::string& text = row()[before - 1].text;
    if (text.size() + utf8.size() <= kMost) text += utf8;
  }

  void erase_line(std::string_view parameters) {
    const size_t end = std::min(column_, row().size());
    if (parameters == "2") return row().clear();
    if (parameters != "1") return row().resize(end);
    for (size_t i = 0; i < end; ++i) row()[i] = {" ", 0};
  }

  // Erases only from the cursor on: the text above is worth reading.
  void erase_below(std::string_view parameters) {
    if (!parameters.empty() && parameters != "0") return;
    rows_.resize(row_ + 1);
    row().resize(std::min(column_, row().size()));
  }

  void set_style(std::string_view parameters) {
    constexpr size_t kLongest = 64;
    if (!colors_) return;
    std::string style = shown_style(parameters);
    const bool resets = parameters.empty() || style == "0" || style.starts_with("0;");
    if (resets) style.erase(0, style.find(';') == std::string::npos ? style.size() : 2);
    if (!resets && style_ > 0 && styles_[style_ - 1].size() + style.size() < kLongest) {
      style = styles_[style_ - 1] + ";" + style;
    }
    const auto known = std::find(styles_.begin(), styles_.end(), style);
    style_ = style.empty() ? 0 : static_cast<size_t>(known - styles_.begin()) + 1;
    if (!style.empty() && known == styles_.end()) styles_.push_back(style);
  }

  std::string line(const std::vector<Cell>& row) const {
    std::string text;
    size_t style = 0;
    const auto change = [&](size_t to) {
      if (style != 0) text += kReset;
      if (to != 0) text += "\033[" + styles_[to - 1] + "m";
      style = to;
    };
    for (const Cell& cell : row) {
      if (cell.style != style) change(cell.style);
      text += cell.text;
    }
    change(0);
    return text;
  }

  bool colors_;
  std::vector<std::vector<Cell>> rows_{1};
  std::vector<std::string> styles_;
  size_t row_ = 0, column_ = 0, style_ = 0, padding_ = 0;
};

// The size of the colour sequence at the beginning of `text`; 0 if it has none.
size_t color_size(std::string_view text) {
  if (!text.starts_with("\033[")) return 0;
  const size_t end = text.find_first_not_of("0123456789;:", 2);
  const bool is_color = end != std::string_view::npos && text[end] == 'm' && end < 64;
  return is_color ? end + 1 : 0;
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t'; });
}

// Whether a terminal shows this character instead of obeying it. Newlines and tabs count as shown.
bool is_shown(char32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  return code == '\n' || code == '\t' || (!control && !is_direction_mark(code));
}

constexpr std::string_view kCut = "...";

struct ShownCharacter {
  size_t size, columns;  // bytes, and columns of a terminal
};

// The first one of a text that is not empty; a byte that is not UTF-8 takes a column.
ShownCharacter next_character(std::string_view text) {
  char32_t code = 0;
  const size_t size = character_size(text, &code);
  if (size == 0) return {1, 1};
  return {size, static_cast<size_t>(columns_of(code))};
}

}  // namespace

bool wants_colors(int fd) {
  if (get_env("NO_COLOR")) return false;
  if (const auto forced = get_env("FORCE_COLOR")) return *forced != "0" && *forced != "false";
  return ::isatty(fd) == 1 && env_or("TERM", "dumb") != "dumb";
}

std::string resolve_output(std::string_view output, bool colors) {
  if (is_plain(output) && output.find('\t') == std::string_view::npos) return std::string(output);
  Screen screen(colors);
  TerminalParser parser(screen);
  parser.add(output);
  parser.finish();
  return screen.text();
}

std::string escape_controls(std::string_view text, bool colors) {
  if (is_plain(text)) return std::string(text);
  std::string escaped;
  while (!text.empty()) {
    char32_t code = 0;
    const size_t color = colors ? color_size(text) : 0;
    const size_t character = color > 0 ? 0 : character_size(text, &code);
    const size_t size = std::max({color, character, size_t{1}});
    if (color > 0 || (character > 0 && is_shown(code))) {
      escaped += text.substr(0, size);
    } else {
      for (const char c : text.substr(0, size)) escaped += "\\x" + hex({&c, 1});
    }
    text.remove_prefix(size);
  }
  return escaped;
}

size_t columns_of_text(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const ShownCharacter next = next_character(text);
    columns += next.columns;
    text.remove_prefix(next.size);
  }
  return columns;
}

std::string cut_to_columns(std::string_view text, size_t columns) {
  if (columns_of_text(text) <= columns) return std::string(text);
  const std::string_view cut = kCut.substr(0, columns);
  size_t end = 0;
  for (size_t used = cut.size(); end < text.size();) {
    const ShownCharacter next = next_character(text.substr(end));
    used += next.columns;
    if (used > columns) break;
    end += next.size;
  }
  return std::string(text.substr(0, end)) + std::string(cut);
}

std::string cut_front_to_columns(std::string_view text, size_t columns) {
  size_t left = columns_of_text(text);
  if (left <= columns) return std::string(text);
  const std::string_view cut = kCut.substr(0, columns);
  while (!text.empty() && left + cut.size() > columns) {
    const ShownCharacter next = next_character(text);
    left -= next.columns;
    text.remove_prefix(next.size);
  }
  return std::string(cut) + std::string(text);
}

std::string shown_name(std::string_view name, size_t most) {
  std::string line = escape_controls(name);
  for (size_t at; (at = line.find_first_of("\n\t")) != std::string::npos;) {
    line.replace(at, 1, line[at] == '\n' ? "\\n" : "\\t");
  }
  return cut_to_columns(line, most);
}

std::string TerminalFilter::pass(std::string_view output) {
  passed_.clear();
  parser_.add(output);
  return std::move(passed_);
}

void TerminalFilter::character(std::string_view utf8, char32_t) { passed_ += utf8; }

void TerminalFilter::control(char c) {
  if (c != '\b') passed_ += c;
}

void TerminalFilter::sequence(std::string_view parameters, char final) {
  if (final == 'm' && colors_) passed_ += "\033[" + shown_style(parameters) + "m";
  if (final == 'K' && parameters.size() <= 1) passed_ += "\033[K";
}

}  // namespace fleet
