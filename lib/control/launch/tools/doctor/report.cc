#include "launch/tools/doctor/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/ranges.h"

namespace fleet {

NLOHMANN_JSON_SERIALIZE_ENUM(Severity, {{Severity::kOk, "ok"},
                                        {Severity::kWarn, "warn"},
                                        {Severity::kFail, "fail"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, check, severity, what, next)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Reach, node_rank, result, detail, clock_offset, round_trip)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeReport, node_rank, address, hostname, findings, mtu, gpus,
                                   fingerprint, reached)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JobReport::Node, address, hostname)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JobReport::Entry, finding, nodes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JobReport, nodes, entries)

namespace {

using Json = nlohmann::ordered_json;

// Display order of the checks of single nodes.
constexpr const char* kOrder[] = {"GPUs",           "libraries", "interface",     "NCCL interface",
                                  "gloo interface", "RDMA",      "locked memory", "settings",
                                  "cores",          "memory",    "open files",    "/dev/shm",
                                  "log folder"};
auto order_of(const std::string& check) {
  return std::find(std::begin(kOrder), std::end(kOrder), check);
}

// Texts of a machine are arbitrary bytes, but JSON needs UTF-8.
template <typename AnyJson>
std::string dump(const AnyJson& json, int indent = -1) {
  return json.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

Json shown_json(const Finding& finding) {
  return {{"check", finding.check},
          {"severity", finding.severity},
          {"what", finding.what},
          {"next", finding.next}};
}

Json shown_json(const JobReport& report) {
  Json json;
  json["ok"] = report.worst() != Severity::kFail;
  json["nodes"] = Json::array();
  for (size_t rank = 0; rank < report.nodes.size(); ++rank) {
    const JobReport::Node& node = report.nodes[rank];
    json["nodes"].push_back(
        {{"node_rank", rank}, {"address", node.address}, {"hostname", node.hostname}});
  }
  json["findings"] = Json::array();
  for (const JobReport::Entry& entry : report.entries) {
    Json one = shown_json(entry.finding);
    one["nodes"] = entry.nodes;
    json["findings"].push_back(std::move(one));
  }
  return json;
}

// As the nodes exchange reports.
template <typename Report>
Report decode(std::string_view bytes) {
  try {
    return nlohmann::json::parse(bytes).get<Report>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kInternal,
                std::string("cannot read another node's report: ") + error.what());
  }
}

std::string node_prefix(const JobReport& report, const JobReport::Entry& entry) {
  if (report.nodes.size() == 1 || entry.nodes.empty()) return {};
  if (entry.nodes.size() == report.nodes.size()) return "all nodes: ";
  if (entry.nodes.size() > 1) return "nodes " + ranges_text(entry.nodes) + ": ";
  const auto rank = static_cast<size_t>(entry.nodes[0]);
  return "node " + std::to_string(rank) + " (" + report.nodes.at(rank).address + "): ";
}

}  // namespace

Severity JobReport::worst() const {
  Severity worst = Severity::kOk;
  for (const Entry& entry : entries) worst = std::max(worst, entry.finding.severity);
  return worst;
}

JobReport examine(const std::vector<NodeReport>& nodes, bool allow_skew) {
  JobReport report;
  for (const NodeReport& node : nodes) {
    report.nodes.push_back({node.address, node.hostname});
    for (const Finding& finding : node.findings) {
      const auto same =
          std::find_if(report.entries.begin(), report.entries.end(),
                       [&](const JobReport::Entry& entry) { return entry.finding == finding; });
      if (same == report.entries.end()) {
        report.entries.push_back({finding, {node.node_rank}});
      } else if (same->nodes.back() != node.node_rank) {
        same->nodes.push_back(node.node_rank);
      }
    }
  }
  // Group the entries of a check.
  std::stable_sort(report.entries.begin(), report.entries.end(), [](const auto& a, const auto& b) {
    return order_of(a.finding.check) < order_of(b.finding.check);
  });
  for (const JobCheck check : {check_reachability, check_mtu, check_clocks, check_equal_gpus}) {
    for (const Finding& finding : check(nodes)) report.entries.push_back({finding, {}});
  }
  for (const Finding& finding : check_skew(nodes, allow_skew)) {
    report.entries.push_back({finding, {}});
  }
  return report;
}

std::string report_line(const JobReport& report, const JobReport::Entry& entry) {
  return node_prefix(report, entry) + entry.finding.what;
}

std::string report_table(const JobReport& report, bool failures_only) {
  size_t width = 0;
  for (const auto& entry : report.entries) width = std::max(width, entry.finding.check.size());
  std::string text;
  for (const JobReport::Entry& entry : report.entries) {
    const Finding& finding = entry.finding;
    if (failures_only && finding.severity != Severity::kFail) continue;
    constexpr const char* kSeverities[] = {"ok    ", "warn  ", "FAIL  "};
    const char* severity = kSeverities[static_cast<size_t>(finding.severity)];
    std::string check = finding.check;
    check.resize(width + 2, ' ');
    text += std::string("  ") + severity + check + report_line(report, entry) + "\n";
    if (!finding.next.empty()) {
      text += std::string(8 + width + 2, ' ') + "-> " + finding.next + "\n";
    }
  }
  return text;
}

Json findings_json(const Findings& findings) {
  Json all = Json::array();
  for (const Finding& finding : findings) all.push_back(shown_json(finding));
  return all;
}

std::string report_json(const JobReport& report) { return dump(shown_json(report), 2) + "\n"; }

std::string encode(const NodeReport& report) { return dump(nlohmann::json(report)); }
NodeReport decode_node_report(std::string_view bytes) { return decode<NodeReport>(bytes); }
std::string encode(const JobReport& report) { return dump(nlohmann::json(report)); }
JobReport decode_job_report(std::string_view bytes) { return decode<JobReport>(bytes); }

}  // namespace fleet
