#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "base/text.h"
#include "commands.h"
#include "launch/planning/compat/line.h"
#include "launch/planning/options.h"
#include "pages/pages.h"

namespace fleet {
namespace {

constexpr char kSummary[] = "start distributed training on one machine or a cluster";

// Escapes text for roff.
std::string roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool line_start = i == 0 || text[i - 1] == '\n';
    if (line_start && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\') {
      out += "\\e";
    } else if (text[i] == '-') {
      out += "\\-";
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string head(const std::string& program, const std::string& summary) {
  std::string upper = program;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return ".TH " + upper + " 1 \"\" \"" + launch_version() + "\"\n.SH NAME\n" + roff(program) +
         " \\- " + roff(summary) + "\n";
}

std::string option_entry(const Option& option, const ConfigKey& key) {
  std::string text = ".TP\n";
  const std::vector<std::string> flags = option.flags();
  for (size_t n = 0; n < flags.size(); ++n) {
    text += std::string(n ? ", " : "") + "\\fB" + roff(flags[n]) + "\\fR";
  }
  if (!option.is_flag()) {
    const std::string value = option.implied.empty() ? option.value : "[=" + option.value + "]";
    text += " \\fI" + roff(value) + "\\fR";
  }
  text += "\n" + roff(key.help) + ".";
  if (!key.choices.empty()) text += " One of " + roff(join(key.choices, ", ")) + ".";
  if (!option.optional && !option.is_flag()) text += " Default: " + roff(key.initial->text()) + ".";
  if (!option.environment.empty()) {
    text += " Environment: " + roff(join(option.environment, ", ")) + ".";
  }
  return text + "\n";
}

std::string option_entries(const OptionGroup& group) {
  std::string text;
  for (size_t i = 0; i < group.options().size(); ++i) {
    const Option& option = group.options()[i];
    if (!option.internal) text += option_entry(option, group.schema().keys()[i]);
  }
  return text;
}

std::string command_section(const Command& command) {
  const CommandSyntax& syntax = command.syntax;
  const std::string summary = command.summary();
  const std::string more = syntax.about.substr(std::min(summary.size() + 1, syntax.about.size()));
  return ".SS " + roff(syntax.program + (syntax.words.empty() ? "" : " " + syntax.words)) + "\n" +
         roff(summary) + ".\n" + (more.empty() ? "" : ".PP\n" + roff(more) + "\n") +
         option_entries(syntax.options);
}

// A summary of docs/reference/exit_codes.md.
constexpr std::pair<const char*, const char*> kExitStatus[] = {
    {"0", "every rank of every node exited with 0"},
    {"the rank's own",
     "the exit code of the first failing rank; 127: the program could not be executed"},
    {"128 + n", "signal n killed the first failing rank, or stopped fleetrun"},
    {"1", "a system error or a bug; see the message"},
    {"2",
     "you have to change something: an option, a file or an address, or a rank found wrong input"},
    {"112", "the rendezvous failed: nodes were missing, or the job was already running or over"},
    {"113", "a node was lost"},
    {"114", "a rank of fleet-worker lost another rank without another known cause"},
    {"115", "the job hung, with --hang_timeout"},
    {"116", "the job failed repeatedly without progress, with --max_restart"},
    {"117", "a check of --preflight or fleetrun doctor failed; no rank was started"},
    {"118", "the loss, a gradient or the saved state was infinite or NaN"},
};

constexpr std::pair<const char*, const char*> kFiles[] = {
    {"log/workerlog.N", "output of local rank N; workerlog.N.1 and so on: earlier parts"},
    {"log/verdict.json", "how the job ended"},
    {"$XDG_RUNTIME_DIR/fleetrun, /tmp/fleetrun-UID",
     "records of your jobs on this host, for fleetrun ls, logs and attach; FLEET_RUNTIME_DIR "
     "selects "
     "another folder"},
    {"log/endpoints.log", "endpoints of all ranks"},
    {"log/environment.log", "configuration, and environment table of the node's first rank"},
    {"~/.config/fleetrun/secret", "secret shared by the nodes of your jobs"},
    {"~/.config/fleetrun/fleetd.secret", "secret of the fleetds"},
};

template <size_t n>
std::string entries(const std::pair<const char*, const char*> (&table)[n]) {
  std::string text;
  for (const auto& [name, meaning] : table) {
    text += ".TP\n\\fB" + roff(name) + "\\fR\n" + roff(meaning) + ".\n";
  }
  return text;
}

}  // namespace

std::string man_page() {
  std::string text = head("fleetrun", kSummary) +
                     ".SH SYNOPSIS\n.B fleetrun\n[\\fIoptions\\fR] \\fIPROGRAM\\fR [\\fIarguments "
                     "of the program\\fR]\n.br\n.B fleetrun\n\\fICOMMAND\\fR "
                     "[\\fIoptions\\fR]\n.SH DESCRIPTION\n" +
                     roff(
                         "Starts PROGRAM once per rank: a job file (.json), a .py, or any program, "
                         "with the environment that Paddle's and PyTorch's programs expect. A "
                         "flag overrides the environment, which overrides the default.") +
                     "\n.SH OPTIONS\nIn option names - equals _.\n" +
                     option_entries(start_and_inspect_options()) +
                     ".SS Options of other launchers\nThey are translated, ignored with a note, "
                     "or rejected with the command to use.\n.nf\n" +
                     roff(compat_help(98)) + ".fi\n" + ".SH COMMANDS\n";
  for (const Command& command : commands()) {
    if (!command.internal) text += command_section(command);
  }
  text += ".SH EXIT STATUS\n" + entries(kExitStatus) + ".SH FILES\n" + entries(kFiles);
  return text + ".SH MORE\n.nf\n" + roff(help_tail()) +
         ".fi\n.SH SEE ALSO\n.BR fleet\\-worker (1),\n.BR fleetd (1)\n";
}

std::string man_page_of(const std::string& program, const std::string& help) {
  // The summary is the first line, or the second after a line of usage.
  const size_t start = help.starts_with("usage:") ? help.find('\n') + 1 : 0;
  const std::string summary = help.substr(start, help.find('\n', start) - start);
  return head(program, summary) + ".SH USAGE\n.nf\n" + roff(help) +
         ".fi\n.SH SEE ALSO\n.BR fleetrun (1)\n";
}

}  // namespace fleet
