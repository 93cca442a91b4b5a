#include "launch/tools/doctor/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSeverities[] = {"ok", "warn", "fail"};
const char* name_of(Severity severity) { return kSeverities[static_cast<size_t>(severity)]; }

// Display order of the checks of single nodes.
constexpr const char* kOrder[] = {"GPUs",           "libraries", "interface",     "NCCL interface",
                                  "gloo interface", "RDMA",      "locked memory", "settings",
                                  "cores",          "memory",    "open files",    "/dev/shm",
                                  "log folder"};
auto order_of(const std::string& check) {
  return std::find(std::begin(kOrder), std::end(kOrder), check);
}

// Texts of a machine are arbitrary bytes, but JSON needs UTF-8.
std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const Finding& finding) {
  return {{"check", finding.check},
          {"severity", name_of(finding.severity)},
          {"what", finding.what},
          {"next", finding.next}};
}

Finding finding_of(const Json& json) {
  Finding finding;
  finding.check = json.at("check");
  finding.what = json.at("what");
  finding.next = json.at("next");
  const std::string severity = json.at("severity");
  finding.severity = severity == "fail"   ? Severity::kFail
                     : severity == "warn" ? Severity::kWarn
                                          : Severity::kOk;
  return finding;
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

template <typename Read>
auto read(std::string_view bytes, Read&& read) {
  try {
    return read(Json::parse(bytes));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kInternal,
                std::string("cannot read another node's report: ") + error.what());
  }
}

// "nodes 0-3, 7"
std::string ranges(const std::vector<int>& numbers) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    texts.push_back(std::to_string(numbers[i]) +
                    (end > i ? "-" + std::to_string(numbers[end]) : ""));
    i = end + 1;
  }
  return join(texts, ", ");
}

std::string node_prefix(const JobReport& report, const JobReport::Entry& entry) {
  if (report.nodes.size() == 1 || entry.nodes.empty()) return {};
  if (entry.nodes.size() == report.nodes.size()) return "all nodes: ";
  if (entry.nodes.size() > 1) return "nodes " + ranges(entry.nodes) + ": ";
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
    std::string severity = finding.severity == Severity::kFail ? "FAIL" : name_of(finding.severity);
    severity.resize(6, ' ');
    std::string check = finding.check;
    check.resize(width + 2, ' ');
    text += "  " + severity + check + report_line(report, entry) + "\n";
    if (!finding.next.empty()) {
      text += std::string(8 + width + 2, ' ') + "-> " + finding.next + "\n";
    }
  }
  return text;
}

std::string findings_json(const Findings& findings) {
  Json all = Json::array();
  for (const Finding& finding : findings) all.push_back(to_json(finding));
  return dump(all);
}

std::string report_json(const JobReport& report) { return dump(to_json(report), 2) + "\n"; }

std::string encode(const NodeReport& report) {
  Json json;
  json["node_rank"] = report.node_rank;
  json["address"] = report.address;
  json["hostname"] = report.hostname;
  json["mtu"] = report.mtu;
  json["gpus"] = report.gpus;
  json["fingerprint"] = report.fingerprint;
  json["findings"] = Json::array();
  for (const Finding& finding : report.findings) json["findings"].push_back(to_json(finding));
  json["reached"] = Json::array();
  for (const Reach& reach : report.reached) {
    json["reached"].push_back({reach.node_rank, static_cast<int>(reach.result), reach.detail,
                               reach.clock_offset, reach.round_trip});
  }
  return dump(json);
}

NodeReport decode_node_report(std::string_view bytes) {
  return read(bytes, [](const Json& json) {
    NodeReport report;
    report.node_rank = json.at("node_rank");
    report.address = json.at("address");
    report.hostname = json.at("hostname");
    report.mtu = json.at("mtu");
    report.gpus = json.at("gpus").get<std::vector<std::string>>();
    report.fingerprint = json.at("fingerprint").get<std::map<std::string, std::string>>();
    for (const Json& finding : json.at("findings")) report.findings.push_back(finding_of(finding));
    for (const Json& reach : json.at("reached")) {
      report.reached.push_back({reach.at(0), static_cast<ReachResult>(reach.at(1).get<int>()),
                                reach.at(2), reach.at(3), reach.at(4)});
    }
    return report;
  });
}

std::string encode(const JobReport& report) { return dump(to_json(report)); }

JobReport decode_job_report(std::string_view bytes) {
  return read(bytes, [](const Json& json) {
    JobReport report;
    for (const Json& node : json.at("nodes")) {
      report.nodes.push_back({node.at("address"), node.at("hostname")});
    }
    for (const Json& entry : json.at("findings")) {
      report.entries.push_back({finding_of(entry), entry.at("nodes").get<std::vector<int>>()});
    }
    return report;
  });
}

}  // namespace fleet
