#include "node/guarded_rank.h"

#include <sys/wait.h>

#include <utility>

#include "base/terminal_text.h"
#include "diagnosis/cause/failure_cause.h"
#include "node/error_file.h"
#include "node/line_splitter.h"

namespace fleet {
namespace {

constexpr size_t kTailLines = 20;

// "stage 1 of 2" of a pipeline, as far as the rank has told.
std::string stage_text(GuardedRank& rank) {
  const std::optional<RankProgress> seen = rank.progress ? rank.progress->read() : std::nullopt;
  if (!seen || seen->stages == 0) return "";
  return "stage " + std::to_string(seen->stage) + " of " + std::to_string(seen->stages);
}

}  // namespace

RankExit exit_of(GuardedRank& rank, int status, OomDetector& oom) {
  RankExit ended;
  ended.set_local_rank(rank.command.local_rank());
  if (WIFSIGNALED(status)) {
    ended.set_signal(WTERMSIG(status));
  } else {
    ended.set_code(WEXITSTATUS(status));
  }
  const std::string log = rank.log->shown();
  ended.set_tail(std::string(last_lines(log, kTailLines)));
  if (status == 0) return ended;
  RecordedError error = read_error_file(rank.command.error_file());
  ended.set_cause(error.message().empty() ? failure_cause(resolve_output(log), ended.signal())
                                          : cause_line(error.message()));
  if (!error.message().empty()) *ended.mutable_error() = std::move(error);
  bool out_of_memory = false;
  const std::string why = explain_exit(oom, rank.pid, ended.signal(), &out_of_memory);
  const std::string stage = stage_text(rank);
  ended.set_note(stage + (stage.empty() || why.empty() ? "" : "; ") + why);
  ended.set_oom(out_of_memory);
  return ended;
}

bool can_be_replaced(GuardedRank& rank) {
  const auto how = rank.command.replacement();
  return how == wire::RankCommand::ALWAYS ||
         (how == wire::RankCommand::IF_IT_SAYS_SO && rank.progress && rank.progress->replaceable());
}

}  // namespace fleet
