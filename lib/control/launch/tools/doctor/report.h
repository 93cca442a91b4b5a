// The report on all nodes, and its formats.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "launch/tools/doctor/checks.h"
#include "launch/tools/doctor/facts.h"

namespace fleet {

struct JobReport {
  struct Node {
    std::string address, hostname;
  };
  struct Entry {
    Finding finding;
    std::vector<int>
        nodes;  // the nodes with this finding; empty: it concerns several nodes together
  };
  std::vector<Node> nodes;     // by rank
  std::vector<Entry> entries;  // equal findings of several nodes share one entry

  Severity worst() const;
};

// `nodes` by rank. `allow_skew`: differences are warnings.
JobReport examine(const std::vector<NodeReport>& nodes, bool allow_skew);

// For people: one line per finding, with advice below it. `failures_only` omits other findings.
std::string report_table(const JobReport& report, bool failures_only = false);
// One entry without the name of the check: "node 1 (10.0.0.2): ...".
std::string report_line(const JobReport& report, const JobReport::Entry& entry);
// For programs, as JSON.
std::string report_json(const JobReport& report);
Json findings_json(const Findings& findings);  // an array

// Encoding between nodes. Decoding throws kInternal for malformed bytes.
std::string encode(const NodeReport& report);
NodeReport decode_node_report(std::string_view bytes);
std::string encode(const JobReport& report);
JobReport decode_job_report(std::string_view bytes);

}  // namespace fleet
