#include "viewing/live_view.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/counted.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/one_line.h"
#include "base/terminal_text.h"
#include "diagnosis/bottleneck.h"

namespace fleet {
namespace {

using wire::GpuUsage;
using wire::LiveRank;

// "950M", "12.3G"
std::string bytes_text(double bytes) {
  const double mib = bytes / (1 << 20);
  if (mib < 1000) return format_printf("%.0fM", mib);
  return format_printf("%.*fG", mib < 100 * 1024 ? 1 : 0, mib / 1024);
}

std::string percent(double share) { return format_printf("%.0f", 100 * share); }

// The sum or the maximum over the GPUs of a rank that report a value.
template <typename Has, typename Get>
std::optional<double> over_gpus(const LiveRank& rank, Has has, Get get, bool sum) {
  std::optional<double> all;
  for (const GpuUsage& gpu : rank.gpus()) {
    if (!(gpu.*has)()) continue;
    const auto value = static_cast<double>((gpu.*get)());
    all = !all ? value : sum ? *all + value : std::max(*all, value);
  }
  return all;
}

std::optional<double> gpu_utilization(const LiveRank& rank) {
  const auto sum = over_gpus(rank, &GpuUsage::has_utilization, &GpuUsage::utilization, true);
  return sum ? std::optional(*sum / rank.gpus_size()) : std::nullopt;
}

std::string throttled(const LiveRank& rank) {
  uint64_t reasons = 0;
  bool any = false;
  for (const GpuUsage& gpu : rank.gpus()) {
    any = any || gpu.has_throttled();
    reasons |= gpu.throttled();
  }
  const std::string text = throttle_text(reasons);
  return any && text.empty() ? "no" : text;
}

// A column's value: sorts, and shows.
struct Column {
  const char* title;
  const char* key;  // of --sort; "" if it is not a key
  int importance;   // in a narrow frame, those with the lowest go first
  std::optional<double> (*value)(const LiveRank&);
  std::string (*text)(double value);
  std::string (*label)(const LiveRank&) = nullptr;  // instead of the value
};

template <auto kHas, auto kGet>
std::optional<double> value_of(const LiveRank& rank) {
  if (!(rank.*kHas)()) return std::nullopt;
  return static_cast<double>((rank.*kGet)());
}

std::string whole(double value) { return format_printf("%.0f", value); }

constexpr int kAlways = 100;
constexpr int kLossDigits = 4;

std::span<const Column> columns() {
  static const Column all[] = {
      {"RANK", "rank", kAlways, [](const LiveRank&) { return std::optional<double>(); }, whole,
       [](const LiveRank& rank) {
         return (rank.server() ? "s" : "") + std::to_string(rank.rank()) +
                (rank.slowest() ? "*" : "");
       }},
      {"NODE", "", 30, [](const LiveRank& rank) { return std::optional<double>(rank.node_rank()); },
       whole},
      {"STEP", "step", 90, value_of<&LiveRank::has_step, &LiveRank::step>, whole},
      {"STEP ms", "ms", 89, value_of<&LiveRank::has_step_ms, &LiveRank::step_ms>,
       [](double ms) { return format_printf("%.*f", ms < 100 ? 1 : 0, ms); }},
      {"SAMPLES/s", "samples", 70,
       value_of<&LiveRank::has_samples_per_second, &LiveRank::samples_per_second>,
       [](double rate) { return format_printf("%.*f", rate < 100 ? 1 : 0, rate); }},
      {"INPUT%", "input", 88, value_of<&LiveRank::has_input_share, &LiveRank::input_share>,
       percent},
      {"PEERS%", "peers", 87, value_of<&LiveRank::has_exposed_share, &LiveRank::exposed_share>,
       percent},
      {"LOSS", "loss", 60, value_of<&LiveRank::has_loss, &LiveRank::loss>,
       [](double loss) { return number_text(loss, kLossDigits); }},
      {"CPU%", "cpu", 80, value_of<&LiveRank::has_cpu, &LiveRank::cpu>, percent},
      {"RSS", "memory", 79, value_of<&LiveRank::has_memory, &LiveRank::memory>, bytes_text},
      {"GPU%", "gpu", 86, gpu_utilization, whole},
      {"GPU MEM", "gpu_memory", 78,
       [](const LiveRank& rank) {
         return over_gpus(rank, &GpuUsage::has_memory_used, &GpuUsage::memory_used, true);
       },
       bytes_text},
      {"MHz", "", 50,
       [](const LiveRank& rank) {
         return over_gpus(rank, &GpuUsage::has_clock_mhz, &GpuUsage::clock_mhz, false);
       },
       whole},
      {"W", "", 51,
       [](const LiveRank& rank) {
         return over_gpus(rank, &GpuUsage::has_power_watts, &GpuUsage::power_watts, true);
       },
       whole},
      {"C", "", 52,
       [](const LiveRank& rank) {
         return over_gpus(rank, &GpuUsage::has_celsius, &GpuUsage::celsius, false);
       },
       whole},
      {"SLOWED BY", "", 53, [](const LiveRank&) { return std::optional<double>(); }, whole,
       throttled},
  };
  return all;
}

std::string cell(const Column& column, const LiveRank& rank) {
  if (column.label) return column.label(rank);
  const std::optional<double> value = column.value(rank);
  return value ? column.text(*value) : "";
}

std::vector<const LiveRank*> sorted(const LiveReport& report, const std::string& key) {
  std::vector<const LiveRank*> ranks;
  for (const LiveRank& rank : report.ranks()) ranks.push_back(&rank);
  const auto column = std::ranges::find_if(
      columns(), [&](const Column& one) { return key == one.key && !one.label; });
  if (column == columns().end()) return ranks;  // by rank, as they come
  std::ranges::stable_sort(ranks, [&](const LiveRank* a, const LiveRank* b) {
    const auto one = column->value(*a), other = column->value(*b);
    if (!one || !other) return one.has_value() && !other.has_value();
    return *one > *other;
  });
  return ranks;
}

struct Table {
  std::vector<const Column*> columns;
  std::vector<std::vector<std::string>> rows;  // the first has the titles
  std::vector<size_t> widths;

  size_t width() const {
    return std::accumulate(widths.begin(), widths.end(), size_t{0}) + 2 * (widths.size() - 1);
  }
  void erase(size_t at) {
    const auto place = static_cast<ptrdiff_t>(at);
    columns.erase(columns.begin() + place);
    widths.erase(widths.begin() + place);
    for (auto& row : rows) row.erase(row.begin() + place);
  }
};

Table table_of(const LiveReport& report, const std::vector<const LiveRank*>& ranks, size_t most) {
  Table table;
  table.rows.resize(1 + ranks.size());
  for (const Column& column : columns()) {
    if (column.title == std::string("NODE") && report.nnodes() < 2) continue;
    std::vector<std::string> cells;
    bool any = false;
    size_t width = std::string(column.title).size();
    for (const LiveRank* rank : ranks) {
      cells.push_back(cell(column, *rank));
      any = any || !cells.back().empty();
      width = std::max(width, cells.back().size());
    }
    if (!any) continue;
    table.columns.push_back(&column);
    table.widths.push_back(width);
    table.rows[0].push_back(column.title);
    for (size_t i = 0; i < cells.size(); ++i) {
      table.rows[i + 1].push_back(cells[i].empty() ? "-" : std::move(cells[i]));
    }
  }
  while (table.columns.size() > 1 && table.width() > most) {
    const auto least = std::ranges::min_element(
        table.columns, {}, [](const Column* column) { return column->importance; });
    table.erase(static_cast<size_t>(least - table.columns.begin()));
  }
  return table;
}

std::string line_of(const Table& table, size_t row) {
  std::string line;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& text = table.rows[row][i];
    line +=
        std::string(i > 0 ? 2 : 0, ' ') + std::string(table.widths[i] - text.size(), ' ') + text;
  }
  return line;
}

std::string headline(const LiveReport& report) {
  std::string line = "job " + shown_name(report.job_id()) + "  " +
                     format_duration(std::floor(static_cast<double>(report.running_ms()) / 1000)) +
                     "  " + counted(report.nnodes(), "node") + ", " +
                     counted(report.world_size(), "rank");
  if (report.generation() > 1) line += "  generation " + std::to_string(report.generation());
  if (report.has_step()) {
    line += "  step " + std::to_string(report.step());
    if (report.target() > 0) line += "/" + std::to_string(report.target());
  }
  if (report.has_loss()) line += "  loss " + number_text(report.loss(), kLossDigits);
  if (report.has_seconds_left()) {
    line += "  ETA " + format_duration(std::floor(report.seconds_left()));
  }
  return line;
}

// At words, into at most `max_lines`; the last one is cut.
void add_wrapped(const std::string& text, size_t columns, size_t max_lines,
                 std::vector<std::string>* lines) {
  std::string line, rest = text;
  for (size_t count = 1; count < max_lines && columns_of_text(rest) > columns; ++count) {
    size_t end = 0;  // of the words that fit
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

template <typename Value>
Json known(bool has, Value value) {
  return has ? Json(value) : Json(nullptr);
}

Json gpu_json(const GpuUsage& gpu) {
  return {{"id", gpu.id()},
          {"utilization", known(gpu.has_utilization(), gpu.utilization())},
          {"memory_used", known(gpu.has_memory_used(), gpu.memory_used())},
          {"memory_total", known(gpu.has_memory_total(), gpu.memory_total())},
          {"clock_mhz", known(gpu.has_clock_mhz(), gpu.clock_mhz())},
          {"power_watts", known(gpu.has_power_watts(), gpu.power_watts())},
          {"celsius", known(gpu.has_celsius(), gpu.celsius())},
          {"slowed_by", known(gpu.has_throttled(), throttle_text(gpu.throttled()))}};
}

Json rank_json(const LiveRank& rank) {
  Json all = {
      {"role", rank.server() ? "server" : "trainer"},
      {"rank", rank.rank()},
      {"local_rank", rank.local_rank()},
      {"node_rank", rank.node_rank()},
      {"slowest", rank.slowest()},
      {"step", known(rank.has_step(), rank.step())},
      {"step_ms", known(rank.has_step_ms(), rank.step_ms())},
      {"samples_per_second", known(rank.has_samples_per_second(), rank.samples_per_second())},
      {"input_share", known(rank.has_input_share(), rank.input_share())},
      {"peers_share", known(rank.has_exposed_share(), rank.exposed_share())},
      {"loss", known(rank.has_loss(), rank.loss())},
      {"cpu", known(rank.has_cpu(), rank.cpu())},
      {"memory", known(rank.has_memory(), rank.memory())},
      {"without_core", known(rank.has_delayed(), rank.delayed())}};
  all["gpus"] = Json::array();
  for (const GpuUsage& gpu : rank.gpus()) all["gpus"].push_back(gpu_json(gpu));
  return all;
}

}  // namespace

const std::vector<std::string>& live_sort_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    for (const Column& column : columns()) {
      if (column.key[0] != '\0') all.emplace_back(column.key);
    }
    return all;
  }();
  return keys;
}

std::string live_frame(const LiveReport& report, const LiveViewOptions& options) {
  const auto most = static_cast<size_t>(std::max(options.columns, 20));
  const bool low = options.rows > 0 && options.rows < 16;
  std::vector<std::string> lines;
  add_wrapped(headline(report), most, low ? 1 : 3, &lines);
  if (report.has_bottleneck()) {
    add_wrapped(one_line(report.bottleneck().line(), 1000), most, low ? 2 : 8, &lines);
  }
  const std::vector<const LiveRank*> ranks = sorted(report, options.sort);
  size_t shown = ranks.size();
  if (options.rows > 0) {
    const auto rows = std::max(static_cast<size_t>(options.rows), lines.size() + 3);
    const size_t room = rows - lines.size() - 1;
    if (shown > room) shown = room - 1;
  }
  const Table table =
      table_of(report, {ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(shown)}, most);
  if (shown == 0) {
    lines.push_back("no rank has reported yet");
  } else {
    lines.push_back(line_of(table, 0));
    if (options.colors) lines.back() = "\x1b[7m" + lines.back() + "\x1b[0m";
  }
  for (size_t i = 0; i < shown; ++i) {
    lines.push_back(line_of(table, i + 1));
    if (options.colors && ranks[i]->slowest()) {
      lines.back() = "\x1b[33m" + lines.back() + "\x1b[0m";
    }
  }
  const size_t left = ranks.size() - shown + static_cast<size_t>(report.left_out());
  if (left > 0) lines.push_back("and " + counted(static_cast<int64_t>(left), "more rank"));
  std::string frame;
  for (const std::string& line : lines) frame += line + "\n";
  return frame;
}

std::string live_key_line(const std::string& sort, int columns) {
  std::string line = "q: end   sort by", letters;
  for (const std::string& key : live_sort_keys()) {
    const bool has_letter = letters.find(key[0]) == std::string::npos;
    if (has_letter) letters += key[0];
    if (has_letter || key == sort) line += key == sort ? " [" + key + "]" : " " + key;
  }
  return cut_to_columns(line, static_cast<size_t>(std::max(columns, 20)));
}

std::string live_json(const LiveReport& report, const std::string& sort, double now) {
  Json all;
  all["time"] = std::round(now * 1000) / 1000;
  all["job_id"] = report.job_id();
  all["generation"] = report.generation();
  all["nnodes"] = report.nnodes();
  all["world_size"] = report.world_size();
  all["running"] = static_cast<double>(report.running_ms()) / 1000;
  all["step"] = known(report.has_step(), report.step());
  all["target"] = known(report.has_target(), report.target());
  all["loss"] = known(report.has_loss(), report.loss());
  all["accuracy"] = known(report.has_accuracy(), report.accuracy());
  all["evaluation_accuracy"] =
      known(report.has_evaluation_accuracy(), report.evaluation_accuracy());
  all["seconds_left"] = known(report.has_seconds_left(), report.seconds_left());
  all["bottleneck"] = nullptr;
  if (report.has_bottleneck()) all["bottleneck"] = bottleneck_json(report.bottleneck());
  all["ranks"] = Json::array();
  for (const LiveRank* rank : sorted(report, sort)) all["ranks"].push_back(rank_json(*rank));
  return all.dump_lossy() + "\n";
}

}  // namespace fleet
