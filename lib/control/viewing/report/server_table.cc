// Parameter servers in a report: from servers.jsonl of the log folder.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/number_text.h"
#include "base/text.h"
#include "viewing/report/run_report.h"
#include "viewing/runs/curve_chart.h"

namespace fleet {
namespace {

constexpr size_t kMostServers = 256, kMostTables = 256;

std::string server_cell(const std::string& text, const char* tag = "td") {
  return std::string("<") + tag + " class=\"short\">" + escape_markup(text) + "</" + tag + ">";
}

std::string server_row(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string html;
  for (const std::string& one : cells) html += server_cell(one, tag);
  return "<tr>" + html + "</tr>\n";
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "-";
  return format_printf(std::abs(value) < 100 ? "%.1f" : "%.0f", value);
}

std::string mib_text(double bytes) { return short_number(bytes / (1 << 20)) + " MiB"; }

// Per second of the server's life.
double server_rate(const JsonObject& server, const char* key) {
  return server.number(key) / server.number("seconds");
}

std::string percent_of_time(const JsonObject& server, const char* key) {
  const double share = server_rate(server, key);
  return std::isfinite(share) ? short_number(100 * share) + " %" : "-";
}

// The one that is busy for the most of its time, if others are clearly less so; nullptr: none.
const JsonObject* busiest(const std::vector<JsonObject>& servers) {
  const JsonObject* most = nullptr;
  double first = 0, second = 0;
  for (const JsonObject& server : servers) {
    const double busy = server_rate(server, "busy_seconds");
    if (!(busy > second)) continue;
    if (busy > first) {
      second = std::exchange(first, busy);
      most = &server;
    } else {
      second = busy;
    }
  }
  return servers.size() > 1 && first > 1.2 * second ? most : nullptr;
}

std::string tables_html(const std::vector<JsonObject>& servers) {
  std::string html;
  size_t count = 0;
  for (const JsonObject& server : servers) {
    const std::vector<std::string> names = server.texts("tables");
    const auto at = [&](const char* key, size_t i) {
      const std::vector<double> all = server.numbers(key);
      return i < all.size() ? all[i] : NAN;
    };
    for (size_t i = 0; i < names.size() && count < kMostTables; ++i, ++count) {
      html += server_row({names[i], server.shown("server"), number_text(at("table_rows", i)),
                          mib_text(at("table_bytes", i)),
                          short_number(at("pulled_rows", i) / server.number("seconds")),
                          short_number(at("pushed_rows", i) / server.number("seconds"))});
    }
  }
  if (html.empty()) return "";
  return "<table>" +
         server_row({"table", "server", "rows", "memory", "rows pulled/s", "rows pushed/s"}, "th") +
         html + "</table>\n";
}

}  // namespace

std::vector<JsonObject> last_lines_of_servers(std::string_view lines, double begin, double end) {
  std::map<int, JsonObject> last;
  for (const std::string_view line : lines_of(lines)) {
    const std::optional<JsonObject> one = JsonObject::parse(line);
    if (!one || one->text("event") != "server") continue;
    const double number = one->number("server"), time = one->number("time");
    if (!(number >= 0 && number < 1e6) || !(one->number("seconds") > 0)) continue;
    if (time >= begin && time <= end) last.insert_or_assign(static_cast<int>(number), *one);
  }
  std::vector<JsonObject> all;
  for (auto& [number, line] : last) all.push_back(std::move(line));
  return all;
}

std::string server_table(const RunReport& report) {
  const std::vector<JsonObject>& servers = report.servers;
  if (servers.empty()) return "";
  std::string html =
      "<table>" + server_row({"server", "address", "blocks", "memory", "pushes/s", "pulls/s",
                              "in MB/s", "out MB/s", "busy", "waits for the last trainer"},
                             "th");
  const JsonObject* const most = busiest(servers);
  for (size_t i = 0; i < std::min(servers.size(), kMostServers); ++i) {
    const JsonObject& server = servers[i];
    double bytes = server.number("block_bytes");
    for (const double table : server.numbers("table_bytes")) bytes += table;
    html += server_row({server.shown("server") + (&server == most ? " (busiest)" : ""),
                        server.text("address"), server.shown("blocks"), mib_text(bytes),
                        short_number(server_rate(server, "pushes")),
                        short_number(server_rate(server, "pulls")),
                        short_number(server_rate(server, "received_bytes") / 1e6),
                        short_number(server_rate(server, "sent_bytes") / 1e6),
                        percent_of_time(server, "busy_seconds"),
                        server.has("ahead") ? "-" : percent_of_time(server, "late_seconds")});
  }
  html += "</table>\n";
  if (servers.size() > kMostServers) html += "<p class=\"dim\">others are left out</p>\n";
  return html + tables_html(servers);
}

}  // namespace fleet
