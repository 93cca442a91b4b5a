#include <algorithm>

#include "base/child_process.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "launch/tools/dry_run/dry_run.h"

namespace fleet {
namespace {

constexpr const char* kPassedOn[] = {"OMP_NUM_THREADS", "FLAGS_selected_gpus", "PADDLE_TRAINER_ID"};

}  // namespace

JobExplanation parse_job_explanation(const std::string& output) {
  JobExplanation explanation;
  auto answer = Json::try_parse(last_line(output));
  const Json* text = answer ? answer->find("text") : nullptr;
  if (!text || !text->is_array()) {
    explanation.missing = "fleet-worker gave no explanation";
    return explanation;
  }
  for (const Json& line : *text) {
    if (line.is_string()) explanation.lines.push_back(escape_controls(line.get<std::string>()));
  }
  answer->erase("text");
  explanation.json = answer->dump_lossy();
  return explanation;
}

JobExplanation explain_job_file(const std::vector<std::string>& command, int ranks, int nodes,
                                const Variables& environment) {
  std::vector<std::string> words = {"/usr/bin/env"};
  for (const auto& [name, value] : environment) {
    const bool passed =
        std::find(std::begin(kPassedOn), std::end(kPassedOn), name) != std::end(kPassedOn);
    if (passed) words.push_back(name + "=" + value);
  }
  words.insert(words.end(), command.begin(), command.end());
  words.insert(words.end(),
               {"--explain", "--format=json", "--measure=never", "--ranks=" + std::to_string(ranks),
                "--nodes=" + std::to_string(nodes)});
  const ChildResult worker = run_child({.words = std::move(words)});
  if (worker.exit_code == 0) return parse_job_explanation(worker.output);
  const std::string said = last_line(worker.error_output);
  JobExplanation explanation;
  explanation.missing =
      said.empty() ? "fleet-worker ended with exit code " + std::to_string(worker.exit_code)
                   : shown_name(said, 300);
  return explanation;
}

}  // namespace fleet
