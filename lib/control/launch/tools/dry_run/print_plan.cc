#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <utility>

#include "base/counted.h"
#include "base/env.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "launch/planning/addresses.h"
#include "launch/planning/rank_commands.h"
#include "launch/planning/secret_names.h"
#include "launch/tools/doctor/checks.h"
#include "launch/tools/dry_run/dry_run.h"

namespace fleet {
namespace {

// With more processes, the table shows only this node's in full.
constexpr int kMaxShownInFull = 64;

const wire::Node& node_of(const DryRunPlan& job, const DryRunRank& rank) {
  return job.world().nodes(rank.node_rank);
}

std::string name_of(const DryRunRank& rank) {
  return (rank.server ? "server " : "rank ") + std::to_string(rank.rank);
}

Variables variables_of(const DryRunRank& rank) {
  Variables all;
  for (const auto& variable : rank.command.environment()) {
    all.emplace_back(variable.name(), variable.value());
  }
  return all;
}

std::vector<int> cores_of(const DryRunRank& rank) {
  return {rank.command.cores().begin(), rank.command.cores().end()};
}

std::string numbers_or_dash(const std::vector<int>& numbers) {
  return numbers.empty() ? "-" : join_numbers(numbers, ",");
}

std::string shortened(const std::string& value) {
  constexpr size_t kWidest = 1000, kStart = 100, kEnd = 50;
  if (value.size() <= kWidest) return value;
  return value.substr(0, kStart) + " ... " + value.substr(value.size() - kEnd) + " (" +
         std::to_string(value.size()) + " characters; --format json shows them)";
}

// The variables that are equal in `others`, or all the others.
Variables only(bool common, Variables variables, const Variables& others) {
  std::erase_if(variables, [&](const auto& variable) {
    const bool found = std::find(others.begin(), others.end(), variable) != others.end();
    return found != common;
  });
  return variables;
}

// The rows of the table, and the full environment of some ranks.
struct Rows {
  std::vector<std::vector<std::string>> places = {
      {"", "node", "address", "local rank", "GPUs", "cores", "endpoint", "log"}};
  Variables common;                                        // equal for all ranks
  std::vector<std::pair<std::string, Variables>> in_full;  // rank and its variables
  bool all_in_full = true;
};

Rows rows_of(const DryRunPlan& job, int rank) {
  Rows rows;
  bool first = true;
  rows.all_in_full = rank >= 0 || job.processes() <= kMaxShownInFull;
  job.for_each_rank(rank, [&](const DryRunRank& one) {
    const wire::Node& node = node_of(job, one);
    const int local = one.local_rank;
    Variables own = variables_of(one);
    rows.places.push_back({name_of(one), std::to_string(one.node_rank), node.address(),
                           std::to_string(local), numbers_or_dash(devices_of(node, local)),
                           numbers_or_dash(cores_of(one)),
                           endpoint(node.address(), node.ports(local)), one.command.log_path()});
    rows.common = first ? own : only(true, std::move(rows.common), own);
    first = false;
    if (rows.all_in_full || one.node_rank == job.assignment.node_rank) {
      rows.in_full.emplace_back(name_of(one), std::move(own));
    }
  });
  if (rank >= 0 || job.processes() == 1)
    rows.common.clear();  // a single rank shows all its variables
  return rows;
}

// Writes the warnings and failures of the doctor's checks.
void write_findings(const Findings& findings, std::ostream& out) {
  size_t well = 0;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kOk) {
      ++well;
      continue;
    }
    out << (finding.severity == Severity::kFail ? "  FAIL        " : "  warning     ")
        << finding.check << ": " << finding.what << "; " << finding.next << "\n";
  }
  if (!findings.empty()) {
    out << "  checks      " << well << " of " << findings.size()
        << " checks of this node passed; fleetrun doctor shows them\n";
  }
}

bool is_shell_name(const std::string& name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

Json variables_json(const Variables& variables) {
  Json object = Json::object();
  for (const auto& [name, value] : variables) object[name] = masked(name, value);
  return object;
}

Json rank_json(const DryRunPlan& job, const DryRunRank& rank) {
  const wire::Node& node = node_of(job, rank);
  const int local = rank.local_rank;
  Json entry;
  entry["role"] = rank.server ? "server" : "trainer";
  entry["rank"] = rank.rank;
  entry["node_rank"] = rank.node_rank;
  entry["address"] = node.address();
  entry["local_rank"] = rank.local_rank;
  entry["gpus"] = devices_of(node, local);
  entry["cores"] = cores_of(rank);
  entry["endpoint"] = endpoint(node.address(), node.ports(local));
  entry["log"] = rank.command.log_path();
  entry["environment"] = variables_json(variables_of(rank));
  return entry;
}

}  // namespace

std::string variables_text(const Variables& variables) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : variables) {
    rows.push_back({name, shortened(masked(name, value))});
  }
  return format_table(rows, "  ");
}

void write_dry_run_table(const DryRunPlan& job, int rank, std::ostream& out) {
  check_rank(rank, job.world().world_size(), "--rank_env");
  const Rows rows = rows_of(job, rank);
  out << "job '" << shown_name(job.job_id) << "': " << job.processes()
      << (job.processes() == 1 ? " process" : " processes") << " on "
      << counted(job.assignment.nnodes(), "node") << "; dry run, nothing starts\n"
      << "  rendezvous  " << job.rendezvous << "\n  program     " << join(job.program, " ") << "\n";
  for (const std::string& note : job.notes) out << "  note        " << note << "\n";
  write_findings(job.findings, out);
  out << "\n" << format_table(rows.places, "  ");
  if (!rows.common.empty()) out << "\nevery rank gets\n" << variables_text(rows.common);
  for (const auto& [name, variables] : rows.in_full) {
    out << "\n" << name << " gets\n" << variables_text(only(false, variables, rows.common));
  }
  if (!rows.all_in_full) {
    out << "\n(for other nodes' ranks use --rank_env R for one, --format json for "
           "all)\n";
  }
  out << "\nand every rank inherits\n"
      << variables_text(job.inherited) << "but not " << join(job.removed, ", ") << "\n";
  if (!job.explanation) return;
  out << "\nwhat the job takes\n";
  for (const std::string& line : job.explanation->lines) out << "  " << line << "\n";
  if (!job.explanation->missing.empty()) out << "  unknown: " << job.explanation->missing << "\n";
}

void write_dry_run_json(const DryRunPlan& job, int rank, std::ostream& out) {
  check_rank(rank, job.world().world_size(), "--rank_env");
  Json head;
  head["job_id"] = job.job_id;
  head["rendezvous"] = job.rendezvous;
  head["nnodes"] = job.assignment.nnodes();
  head["world_size"] = job.assignment.world_size();
  head["servers"] = job.world().servers();
  head["program"] = job.program;
  head["notes"] = job.notes;
  head["findings"] = findings_json(job.findings);
  head["inherited"] = variables_json(job.inherited);
  head["removed"] = job.removed;
  if (job.explanation) {
    head["explanation"] =
        job.explanation->json.empty() ? Json(nullptr) : Json::parse(job.explanation->json);
    if (!job.explanation->missing.empty()) {
      head["notes"].push_back("no explanation of the job: " + job.explanation->missing);
    }
  }
  const std::string text = head.dump_lossy(2);
  out << text.substr(0, text.size() - 2) << ",\n  \"ranks\": [";  // without "\n}"
  const char* before = "\n    ";
  job.for_each_rank(rank, [&](const DryRunRank& one) {
    out << before << rank_json(job, one).dump_lossy();
    before = ",\n    ";
  });
  out << "\n  ]\n}\n";
}

void write_dry_run_shell(const DryRunPlan& job, int rank, bool masked_secrets, std::ostream& out) {
  check_rank(rank, job.world().world_size(), "--rank_env");
  job.for_each_rank(rank, [&](const DryRunRank& one) {
    out << "# " << name_of(one) << " of " << job.assignment.world_size() << " (local rank "
        << one.local_rank << " of node " << one.node_rank << ", " << node_of(job, one).address()
        << ")\n";
    for (const std::string& name : one.command.removed()) out << "unset " << name << "\n";
    Variables all = job.inherited;
    const Variables own = variables_of(one);
    all.insert(all.end(), own.begin(), own.end());
    for (const auto& [name, value] : all) {
      // Skip the shell's own variables and functions exported by bash.
      const bool own = name == "_" || name == "PWD" || name == "OLDPWD" || name == "SHLVL";
      if (own || !is_shell_name(name)) continue;
      if (masked_secrets && is_secret(name) && !value.empty()) {
        out << "# " << name << " is not shown on a terminal\n";
      } else {
        out << "export " << name << "=" << shell_word(value) << "\n";
      }
    }
  });
}

// As one of this node's ranks would run it.
static JobExplanation explanation_of(const LaunchPlan& plan, const DryRunPlan& job) {
  Variables environment;
  const wire::Node& node = job.assignment.node();
  job.for_each_rank(node.first_rank(),
                    [&](const DryRunRank& rank) { environment = variables_of(rank); });
  return explain_job_file(plan.command, job.world().world_size(), job.assignment.nnodes(),
                          job.world().servers(), environment);
}

void print_dry_run(const LaunchPlan& plan) {
  const DryRun& options = plan.request.dry_run;
  DryRunPlan job = make_dry_run_plan(plan, whole_environment());
  if (plan.trains && options.format != "shell") {
    job.explanation = explanation_of(plan, job);
  }
  if (options.format == "json") {
    write_dry_run_json(job, options.rank, std::cout);
  } else if (options.format == "shell") {
    write_dry_run_shell(job, options.rank, ::isatty(STDOUT_FILENO) == 1, std::cout);
  } else {
    write_dry_run_table(job, options.rank, std::cout);
  }
  std::cout.flush();
}

}  // namespace fleet
