
#include <iostream>

#include "base/json.h"
#include "base/ranges.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "launch/planning/secret_names.h"
#include "launch/tools/dry_run/dry_run.h"

namespace fleet {
namespace {

// With more nodes, the table shows only the first one's command.
constexpr size_t kMaxShownCommands = 8;

std::string processes_text(const NodeProcesses& processes) {
  if (!processes.known) return "one per GPU of the node";
  std::vector<std::string> texts;
  if (!processes.servers.empty()) texts.push_back("servers " + ranges_text(processes.servers));
  if (!processes.ranks.empty()) texts.push_back("ranks " + ranges_text(processes.ranks));
  return texts.empty() ? "none: spare node" : join(texts, ", ");
}

std::string line_of(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

void write_commands(const ViaPlan& plan, std::ostream& out) {
  if (!plan.command.empty()) out << "\nthis machine runs\n  " << line_of(plan.command) << "\n";
  const bool all = plan.nodes.size() <= kMaxShownCommands;
  for (size_t k = 0; k < (all ? plan.nodes.size() : 1); ++k) {
    const NodeStart& node = plan.nodes[k];
    const std::string name = "node " + std::to_string(k) + " (" + node.name + ")";
    if (!node.reached_by.empty()) {
      out << "\n" << name << " is reached by\n  " << line_of(node.reached_by) << "\n";
    }
    if (!node.command.empty()) out << "\n" << name << " runs\n  " << line_of(node.command) << "\n";
  }
  if (!all) out << "\n(the other nodes' commands are similar; --format json shows them)\n";
}

Json node_json(const NodeStart& node, size_t node_index) {
  Json one;
  one["node_rank"] = node_index;
  one["address"] = node.name;
  one["through"] = node.through;
  one["ranks"] = node.processes.known ? Json(node.processes.ranks) : Json(nullptr);
  one["servers"] = node.processes.known ? Json(node.processes.servers) : Json(nullptr);
  one["gpus"] = node.gpus;
  one["folder"] = node.folder;
  one["log_dir"] = node.logs;
  one["reached_by"] = node.reached_by;
  one["command"] = node.command;
  return one;
}

}  // namespace

void write_via_table(const ViaPlan& plan, std::ostream& out) {
  out << "job '" << shown_name(plan.job_id) << "' on " << plan.nodes.size()
      << (plan.nodes.size() == 1 ? " node" : " nodes") << " with --via=" << plan.via
      << "; dry run, nothing starts\n  program     " << join(plan.program, " ") << "\n";
  for (const std::string& note : plan.notes) out << "  note        " << note << "\n";
  std::vector<std::vector<std::string>> rows = {
      {"node", "address", "through", "processes", "GPUs", "folder", "logs"}};
  for (const NodeStart& node : plan.nodes) {
    rows.push_back({std::to_string(rows.size() - 1), node.name, node.through,
                    processes_text(node.processes), node.gpus,
                    node.folder.empty() ? "." : node.folder, node.logs});
  }
  out << "\n" << format_table(rows, "  ");
  write_commands(plan, out);
  if (!plan.environment.empty()) {
    out << "\nvariables that every node gets from this environment\n"
        << variables_text(plan.environment);
  }
}

void write_via_json(const ViaPlan& plan, std::ostream& out) {
  Json all;
  all["job_id"] = plan.job_id;
  all["via"] = plan.via;
  all["program"] = plan.program;
  all["notes"] = plan.notes;
  all["command"] = plan.command;
  all["environment"] = Json::object();
  for (const auto& [name, value] : plan.environment) {
    all["environment"][name] = masked(name, value);
  }
  all["nodes"] = Json::array();
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    all["nodes"].push_back(node_json(plan.nodes[k], k));
  }
  out << all.dump_lossy(2) << "\n";
}

void print_via_plan(const ViaPlan& plan, const DryRun& options) {
  options.format == "json" ? write_via_json(plan, std::cout) : write_via_table(plan, std::cout);
  std::cout.flush();
}

}  // namespace fleet
