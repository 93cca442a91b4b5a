// Frames of fleetrun top, and its keys.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/counted.h"
#include "base/number_text.h"
#include "base/one_line.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "viewing/live_columns.h"
#include "viewing/live_view.h"

namespace fleet {
namespace {

using wire::LiveRank;

constexpr const char *kBold = "1", *kSorted = "1;7", *kRed = "31", *kYellow = "33";

std::string headline(const LiveReport& report, size_t width) {
  const size_t name = std::clamp(width, size_t{24}, size_t{80}) - 16;
  std::string line = "job " + shown_name(report.job_id(), name) + "  " +
                     format_duration(std::floor(static_cast<double>(report.running_ms()) / 1000)) +
                     "  " + counted(report.nnodes(), "node") + ", " +
                     counted(report.world_size(), "rank");
  if (report.generation() > 1) line += "  generation " + std::to_string(report.generation());
  if (report.has_step()) {
    line += "  step " + std::to_string(report.step());
    if (report.target() > 0) line += "/" + std::to_string(report.target());
  }
  if (report.has_loss()) line += "  loss " + number_text(report.loss(), kLiveLossDigits);
  if (report.has_seconds_left()) {
    line += "  ETA " + format_duration(std::floor(report.seconds_left()));
  }
  return line;
}

// At words, into at most `max_lines`; the last one is cut.
void add_wrapped(const std::string& text, size_t columns, size_t max_lines,
                 std::vector<std::string>* lines) {
  std::string rest = text;
  for (size_t count = 1; count < max_lines && columns_of_text(rest) > columns; ++count) {
    size_t end = 0;  // where the words that fit end
    for (size_t next = rest.find(' '); next != std::string::npos; next = rest.find(' ', next + 1)) {
      if (columns_of_text(std::string_view(rest).substr(0, next)) > columns) break;
      end = next;
    }
    if (end == 0) break;  // a long word
    lines->push_back(rest.substr(0, end));
    lines->back().erase(lines->back().find_last_not_of(' ') + 1);
    rest.erase(0, rest.find_first_not_of(' ', end));
  }
  lines->push_back(cut_to_columns(rest, columns));
}

std::string styled(const std::string& text, const char* style, bool colors) {
  return colors ? std::string("\x1b[") + style + "m" + text + "\x1b[0m" : text;
}

size_t width_of(const LiveViewOptions& options) {
  return static_cast<size_t>(std::max(options.columns, 1));
}

std::vector<std::string> head_lines(const LiveReport& report, const LiveViewOptions& options) {
  const bool low = options.rows > 0 && options.rows < 16;
  std::vector<std::string> lines, bottleneck;
  add_wrapped(headline(report, width_of(options)), width_of(options), low ? 1 : 3, &lines);
  for (std::string& line : lines) line = styled(line, kBold, options.colors);
  if (!report.has_bottleneck()) return lines;
  add_wrapped(one_line(report.bottleneck().line(), 1000), width_of(options), low ? 2 : 8,
              &bottleneck);
  for (const std::string& line : bottleneck) {
    lines.push_back(styled(line, kYellow, options.colors));
  }
  return lines;
}

// Those that some rank knows.
std::vector<const LiveColumn*> known_columns(std::span<const LiveColumn> columns,
                                             const std::vector<const LiveRank*>& ranks,
                                             bool with_node) {
  std::vector<const LiveColumn*> known;
  for (const LiveColumn& column : columns) {
    if (column.key == std::string_view("node") && !with_node) continue;
    const auto has = [&](const LiveRank* rank) { return column.value(*rank).has_value(); };
    if (std::ranges::any_of(ranks, has)) known.push_back(&column);
  }
  return known;
}

TableCell cell_of(const LiveColumn& column, const LiveRow& row, bool colors) {
  TableCell cell;
  if (column.label) {
    cell.text = column.label(row);
  } else if (const auto value = column.value(*row.values)) {
    cell.text = column.text(*value);
  }
  if (cell.text.empty()) cell.text = "-";
  if (!colors) return cell;
  const bool slowed = column.key == std::string_view("slowed") && column.value(*row.values) == 1;
  if (slowed) {
    cell.style = kRed;
  } else if (row.kind == LiveRow::Kind::kAll) {
    cell.style = kBold;
  } else if (row.values->slowest()) {
    cell.style = kYellow;
  }
  return cell;
}

// Adds the table to the frame.
void add_table(const std::vector<const LiveColumn*>& columns, const std::vector<LiveRow>& rows,
               const LiveViewOptions& options, LiveFrame* frame) {
  std::vector<TableColumn> titles;
  std::vector<std::vector<TableCell>> cells(rows.size());
  for (const LiveColumn* column : columns) {
    const bool sorted = column->key == options.sort;
    const bool node = options.by_node && column->key == std::string_view("rank");
    titles.push_back({.title = node ? "NODE" : column->title,
                      .importance = sorted ? LiveColumn::kAlways - 1 : column->importance,
                      .right = true});
    if (options.colors) titles.back().style = sorted ? kSorted : kBold;
    for (size_t i = 0; i < rows.size(); ++i) {
      cells[i].push_back(cell_of(*column, rows[i], options.colors));
    }
  }
  const FittedTable table = fitted_table(titles, cells, width_of(options));
  frame->lines.insert(frame->lines.end(), table.lines.begin(), table.lines.end());
  for (const size_t i : table.columns) {
    if (columns[i]->letter == 0) continue;
    frame->keys.push_back({columns[i]->letter, columns[i]->key, titles[i].title});
  }
}

// The part of the ranks for which a frame has room.
struct Page {
  size_t first, shown;
  bool sums, position;  // their lines
};
// `total`: with those that the report leaves out. `room`: for lines below the titles.
Page page_of(size_t ranks, size_t total, size_t room, int first) {
  constexpr size_t kLeastRoomOfSums = 5;
  Page page = {0, ranks, ranks > 1, total > ranks};
  const auto needed = [&] { return page.shown + page.sums + page.position; };
  // A rank is worth more than the sums.
  if (room < kLeastRoomOfSums || (needed() == room + 1 && !page.position)) page.sums = false;
  if (needed() > room) {
    page.position = true;
    page.shown = room - std::min(room, size_t{1} + page.sums);
  }
  page.first = std::min(static_cast<size_t>(std::max(first, 0)), ranks - page.shown);
  return page;
}

void add_ranks(const std::vector<const LiveRank*>& ranks, const LiveReport& report, size_t room,
               const LiveViewOptions& options, LiveFrame* frame) {
  const LiveRow::Kind kind = options.by_node ? LiveRow::Kind::kNode : LiveRow::Kind::kRank;
  const auto left_out = options.by_node ? 0 : static_cast<size_t>(report.left_out());
  const size_t total = ranks.size() + left_out;
  const Page page = page_of(ranks.size(), total, room, options.first);
  std::vector<LiveRow> rows;
  for (size_t i = 0; i < page.shown; ++i) rows.push_back({kind, ranks[page.first + i]});
  const LiveRank sums = page.sums ? sum_of(ranks) : LiveRank();
  if (page.sums) rows.push_back({LiveRow::Kind::kAll, &sums});
  const bool with_node = report.nnodes() > 1 && !options.by_node;
  add_table(known_columns(live_columns(), ranks, with_node), rows, options, frame);
  frame->first = static_cast<int>(page.first);
  frame->shown = static_cast<int>(page.shown);
  if (!page.position) return;
  const std::string noun = options.by_node ? "node" : "rank";
  const std::string position = page.shown == 0 ? counted(static_cast<int64_t>(total), noun)
                                               : noun + "s " + std::to_string(page.first + 1) +
                                                     "-" + std::to_string(page.first + page.shown) +
                                                     " of " + std::to_string(total);
  frame->lines.push_back(cut_to_columns(position, width_of(options)));
}

// Below the trainers. If not all servers fit, the slowest comes first.
std::vector<std::string> server_lines(const LiveReport& report, size_t room,
                                      const LiveViewOptions& options) {
  std::vector<const LiveRank*> servers = sorted_servers(report, options.sort);
  if (servers.empty() || room < 2) return {};
  const size_t total = servers.size(), shown = total < room ? total : room - 1;
  if (shown < total) {
    std::ranges::stable_sort(servers, [](const LiveRank* a, const LiveRank* b) {
      return a->slowest() && !b->slowest();
    });
  }
  std::vector<LiveRow> rows;
  for (size_t i = 0; i < shown; ++i) rows.push_back({LiveRow::Kind::kRank, servers[i]});
  LiveViewOptions own = options;
  own.by_node = false;
  const std::string cut = "  " + std::to_string(shown) + " of " + std::to_string(total);
  if (shown < total) own.columns = std::max(1, own.columns - static_cast<int>(cut.size()));
  LiveFrame frame;
  add_table(known_columns(server_columns(), servers, report.nnodes() > 1), rows, own, &frame);
  if (shown < total) frame.lines[0] += cut;
  return frame.lines;
}

LiveReport without_servers(const LiveReport& report) {
  LiveReport trainers = report;
  trainers.clear_ranks();
  for (const LiveRank& rank : report.ranks()) {
    if (!rank.server()) *trainers.add_ranks() = rank;
  }
  return trainers;
}

// The lines of a frame that servers take at most.
size_t room_of_servers(const LiveReport& report, size_t room) {
  size_t servers = 0;
  for (const LiveRank& rank : report.ranks()) servers += rank.server();
  if (servers == 0) return 0;
  const size_t most = report.ranks_size() == static_cast<int>(servers) ? room : room / 2;
  return std::min(servers + 1, most);
}

std::vector<std::string> help_lines(const LiveFrame& frame, const LiveViewOptions& options) {
  std::vector<std::string> letters;
  for (const LiveKey& key : frame.keys)
    letters.push_back(std::string(1, key.letter) + "=" + key.title);
  std::vector<std::string> lines;
  for (const std::string& line :
       {std::string("keys of fleetrun top (any key leaves this page)"), std::string("q: end"),
        std::string("N: a line with sums for each node, or a line for each rank"),
        std::string("arrows, j, k, PgUp, PgDn, Home, End: scroll"),
        "sort by column: " + join(letters, ", ")}) {
    add_wrapped(line, width_of(options), std::numeric_limits<size_t>::max(), &lines);
  }
  return lines;
}

}  // namespace

std::string LiveFrame::text() const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

LiveFrame live_frame(const LiveReport& report, const LiveViewOptions& options) {
  LiveFrame frame;
  frame.lines = head_lines(report, options);
  const LiveReport trainers = without_servers(report);
  const LiveReport nodes = options.by_node ? node_sums(trainers) : LiveReport();
  const std::vector<const LiveRank*> ranks =
      sorted_ranks(options.by_node ? nodes : trainers, options.sort);
  const size_t most =
      options.rows > 0 ? static_cast<size_t>(options.rows) : std::numeric_limits<size_t>::max();
  const size_t used = frame.lines.size() + 1 + (options.note.empty() ? 0 : 1);  // and the titles
  const size_t room = most - std::min(most, used);
  const std::vector<std::string> servers =
      server_lines(report, room_of_servers(report, room), options);
  if (ranks.empty() && servers.empty()) {
    frame.lines.push_back(cut_to_columns("no rank has reported yet", width_of(options)));
  } else if (!ranks.empty()) {
    add_ranks(ranks, report, room - servers.size(), options, &frame);
  }
  frame.lines.insert(frame.lines.end(), servers.begin(), servers.end());
  if (options.help) frame.lines = help_lines(frame, options);
  if (!options.note.empty()) {
    if (frame.lines.size() >= most) frame.lines.resize(most - 1);
    frame.lines.push_back(cut_to_columns(options.note, width_of(options)));
  }
  if (frame.lines.size() > most) frame.lines.resize(most);
  return frame;
}

std::string live_key_line(const LiveFrame& frame, const LiveViewOptions& options) {
  std::string names = "q: end  ?: keys  sort:", letters = names;
  for (const LiveKey& key : frame.keys) {
    const bool sorted = key.sort == options.sort;
    const std::string letter(1, key.letter);
    names += sorted ? "  [" + letter + " " + key.sort + "]" : "  " + letter + " " + key.sort;
    letters += sorted ? " [" + letter + "]" : " " + letter;
  }
  return columns_of_text(names) <= width_of(options) ? names
                                                     : cut_to_columns(letters, width_of(options));
}

}  // namespace fleet
