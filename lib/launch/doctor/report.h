// What the checks of all nodes come to, and how it is shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/doctor/checks.h"
#include "launch/doctor/finding.h"

namespace fleet {

struct JobReport {
  struct Node {
    std::string address, hostname;
  };
  struct Entry {
    Finding finding;
    std::vector<int> nodes;  // where it was found; empty: it is about several of them
  };
  std::vector<Node> nodes;     // by rank
  std::vector<Entry> entries;  // what several nodes found alike is one entry

  Severity worst() const;
};

// `nodes` by rank. `allow_skew`: what differs is only warned of.
JobReport examine(const std::vector<NodeReport>& nodes, bool allow_skew);

// For people: a line a finding, and under it what to do. Failures only where `failures_only`.
std::string report_table(const JobReport& report, bool failures_only = false);
// One of them, without the check's name: "node 1 (10.0.0.2): ...".
std::string report_line(const JobReport& report, const JobReport::Entry& entry);
// For programs, as JSON.
std::string report_json(const JobReport& report);
std::string findings_json(const Findings& findings);  // an array

// As bytes, between nodes, and back. kInternal where the bytes are none.
std::string encode(const NodeReport& report);
NodeReport decode_node_report(std::string_view bytes);
std::string encode(const JobReport& report);
JobReport decode_job_report(std::string_view bytes);

}  // namespace fleet
