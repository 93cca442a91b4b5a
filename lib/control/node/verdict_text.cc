#include "node/verdict_text.h"

#include <string_view>

#include "base/number_text.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet {
namespace {

// "\n  the last lines of its log log/workerlog.0:\n    ..."
std::string tail_text(const RankExit& exit, const ExitText& wanted) {
  const std::string log = exit.log_path().empty() ? "output" : "log " + exit.log_path();
  if (exit.tail().empty()) return "\n  its " + log + " is empty";
  if (!wanted.last_lines) return {};
  std::string text = "\n  the last lines of its " + log + ":";
  const std::string shown = resolve_output(exit.tail(), wanted.colors);
  for (const std::string_view line : lines_of(shown)) text.append("\n    ").append(line);
  return text;
}

// Paddle's.
std::string abort_line(const RankExit& exit, int size) {
  const std::string kind = exit.server() ? "server" : "trainer";
  return "\nABORT!!! Out of all " + std::to_string(size) + " " + kind + "s, the " + kind +
         " process with rank=[" + std::to_string(exit.rank()) +
         "] was aborted. Please check its log.";
}

// "\n  local rank 1 on node 1 (10.0.0.2), after 12.3 s": what the headline omits.
std::string detail_text(const Verdict& verdict) {
  const RankExit& exit = verdict.exit();
  std::string text = "\n  local rank " + std::to_string(exit.local_rank()) + " on node " +
                     std::to_string(exit.node_rank()) + " (" +
                     node_label(verdict.node(), verdict.hostname()) + "), after " +
                     format_printf("%.1f s", static_cast<double>(exit.ran_for_ms()) / 1000);
  if (!exit.cause().empty() && !exit.note().empty()) text += " (" + exit.note() + ")";
  if (verdict.restarts() == 0) return text;
  return text + "; it was restarted before, " + std::to_string(verdict.restarts()) +
         (verdict.restarts() == 1 ? " time" : " times");
}

}  // namespace

ExitText exit_text(const MessageStyle& style, const RankExit& exit, int own_node) {
  const bool own = own_node >= 0 && exit.node_rank() == own_node;
  const bool here =
      style.shown == ShownOutput::kOfAllNodes || (style.shown == ShownOutput::kOfThisNode && own);
  return {style.colors, !style.brief, !(style.brief && exit.shown() && here)};
}

std::string verdict_text(const Verdict& verdict, const World* world, ExitText parts) {
  if (succeeded(verdict)) return {};
  const RankExit& exit = verdict.exit();
  const bool failed = verdict.kind() == Verdict::RANK_FAILED;
  if (!failed && verdict.kind() != Verdict::NO_PROGRESS) return verdict.message();
  if (!verdict.has_exit()) return verdict.message();
  if (!failed || !world) return verdict.message() + tail_text(exit, parts);
  const int size = exit.server() ? world->servers() : world->world_size();
  std::string text = headline(exit, size, world->nodes_size());
  if (parts.abort_line) text += abort_line(exit, size);
  return text + detail_text(verdict) + tail_text(exit, parts);
}

std::string restart_text(const RestartCommand& command, ExitText parts) {
  std::string text = command.cause().message() + "\n  the job is restarted";
  if (command.restart() > 0) {
    text +=
        ": restart " + std::to_string(command.restart()) + " of " + std::to_string(command.of());
  }
  if (command.cause().kind() != Verdict::RANK_FAILED) return text;
  return text + tail_text(command.cause().exit(), parts);
}

std::string replacement_text(const wire::ReplaceCommand& command, ExitText parts) {
  return command.message() + "\n  the job continues, and the rank is started again: restart " +
         std::to_string(command.used()) + " of " + std::to_string(command.of()) +
         tail_text(command.exit(), parts);
}

}  // namespace fleet
