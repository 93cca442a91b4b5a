#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json.h"
#include "base/ranges.h"
#include "launch/tools/doctor/checks.h"

namespace fleet {
namespace {

// Display order of the checks of single nodes.
constexpr const char* kOrder[] = {"GPUs",           "libraries", "interface",     "NCCL interface",
                                  "gloo interface", "RDMA",      "locked memory", "settings",
                                  "cores",          "memory",    "open files",    "/dev/shm",
                                  "log folder"};
auto order_of(const std::string& check) {
  return std::find(std::begin(kOrder), std::end(kOrder), check);
}

const char* name_of(Severity severity) {
  constexpr const char* kNames[] = {"ok", "warn", "fail"};
  return kNames[static_cast<size_t>(severity)];
}

Json to_json(const Finding& finding) {
  return {{"check", finding.check},
          {"severity", name_of(finding.severity)},
          {"what", finding.what},
          {"next", finding.next}};
}

Json to_json(const JobReport& report) {
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
    Json one = to_json(entry.finding);
    one["nodes"] = entry.nodes;
    json["findings"].push_back(std::move(one));
  }
  return json;
}

template <typename T>
std::vector<T> list_of(const Json& json, T (*element_of)(const Json&)) {
  std::vector<T> all;
  for (const Json& one : json.elements()) all.push_back(element_of(one));
  return all;
}

std::string text_at(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

Finding finding_of(const Json& json) {
  Finding finding{.check = text_at(json, "check")};
  for (const Severity severity : {Severity::kWarn, Severity::kFail}) {
    if (json.at("severity") == name_of(severity)) finding.severity = severity;
  }
  finding.what = text_at(json, "what");
  finding.next = text_at(json, "next");
  return finding;
}

Json to_json(const Reach& reach) {
  return {{"clock_offset", reach.clock_offset},
          {"detail", reach.detail},
          {"node_rank", reach.node_rank},
          {"result", static_cast<int>(reach.result)},
          {"round_trip", reach.round_trip}};
}

Reach reach_of(const Json& json) {
  return {.node_rank = json.at("node_rank").get<int>(),
          .result = static_cast<ReachResult>(json.at("result").get<int64_t>()),
          .detail = text_at(json, "detail"),
          .clock_offset = json.at("clock_offset").get<double>(),
          .round_trip = json.at("round_trip").get<double>()};
}

JobReport::Node node_of(const Json& json) {
  return {text_at(json, "address"), text_at(json, "hostname")};
}

JobReport::Entry entry_of(const Json& json) {
  return {finding_of(json), json.at("nodes").get<std::vector<int>>()};
}

template <typename T>
Json list_json(const std::vector<T>& all) {
  Json list = Json::array();
  for (const T& one : all) list.push_back(to_json(one));
  return list;
}

Json to_json(const NodeReport& report) {
  return {{"address", report.address},         {"findings", list_json(report.findings)},
          {"fingerprint", report.fingerprint}, {"gpus", report.gpus},
          {"hostname", report.hostname},       {"mtu", report.mtu},
          {"node_rank", report.node_rank},     {"reached", list_json(report.reached)}};
}

NodeReport node_report_of(const Json& json) {
  return {.node_rank = json.at("node_rank").get<int>(),
          .address = text_at(json, "address"),
          .hostname = text_at(json, "hostname"),
          .findings = list_of(json.at("findings"), finding_of),
          .mtu = json.at("mtu").get<int>(),
          .gpus = json.at("gpus").get<std::vector<std::string>>(),
          .fingerprint = json.at("fingerprint").get<std::map<std::string, std::string>>(),
          .reached = list_of(json.at("reached"), reach_of)};
}

JobReport job_report_of(const Json& json) {
  return {.nodes = list_of(json.at("nodes"), node_of),
          .entries = list_of(json.at("findings"), entry_of)};
}

template <typename Report>
Report decode(std::string_view bytes, Report (*report_of)(const Json&)) {
  try {
    return report_of(Json::parse(bytes));
  } catch (const JsonError& error) {
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

Json findings_json(const Findings& findings) { return list_json(findings); }

// Texts of a machine are arbitrary bytes, but JSON needs UTF-8: dump_lossy().
std::string report_json(const JobReport& report) { return to_json(report).dump_lossy(2) + "\n"; }
std::string encode(const NodeReport& report) { return to_json(report).dump_lossy(); }
NodeReport decode_node_report(std::string_view bytes) { return decode(bytes, node_report_of); }
std::string encode(const JobReport& report) { return to_json(report).dump_lossy(); }
JobReport decode_job_report(std::string_view bytes) { return decode(bytes, job_report_of); }

Findings check_settings(const NodeFacts& node) {
  Findings all = check_spelling(node);
  for (const Findings& more : {check_values(node), check_sense(node)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

Findings check_node(const NodeFacts& node) {
  constexpr std::array<NodeCheck, 12> kChecks = {
      check_gpus,           check_libraries,  check_interface,     check_nccl_interface,
      check_gloo_interface, check_rdma,       check_settings,      check_cores,
      check_memory,         check_open_files, check_shared_memory, check_disk};
  Findings all;
  for (const NodeCheck check : kChecks) {
    const Findings found = check(node);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

NodeReport report_of(const NodeFacts& node) {
  NodeReport report;
  report.address = node.address;
  report.hostname = node.hostname;
  report.findings = check_node(node);
  if (const NetworkInterface* primary_interface = node.primary_interface())
    report.mtu = primary_interface->mtu;
  for (const GpuState& gpu : node.gpu.gpus) report.gpus.push_back(gpu.name);
  return report;
}

}  // namespace fleet
