#include "rendezvous/types.h"

#include <string.h>

#include <cstdio>

namespace fleet {

const char* name_of(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kSuccess:
      return "success";
    case VerdictKind::kRankFailed:
      return "rank failed";
    case VerdictKind::kNodeLost:
      return "node lost";
    case VerdictKind::kHang:
      return "hang";
    case VerdictKind::kStopped:
      return "stopped";
  }
  return "?";
}

int exit_code_for(const Verdict& verdict) {
  switch (verdict.kind) {
    case VerdictKind::kSuccess:
      return 0;
    case VerdictKind::kRankFailed:
      return verdict.exit.signal != 0 ? 128 + verdict.exit.signal : verdict.exit.code;
    case VerdictKind::kNodeLost:
      return kExitNodeLost;
    case VerdictKind::kHang:
      return kExitHang;
    case VerdictKind::kStopped:
      return 128 + verdict.signal;
  }
  return 1;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string node_label(const std::string& address, const std::string& hostname) {
  const bool loopback = address.starts_with("127.") || address == "::1";
  const bool said = address == hostname || address.starts_with(hostname + ".");
  return hostname.empty() || loopback || said ? address : address + ", host " + hostname;
}

std::string describe(const RankExit& exit, const std::string& node) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", exit.ran_for.count() / 1000.0);
  std::string text = (exit.server ? "server " : "rank ") + std::to_string(exit.rank) +
                     " (local rank " + std::to_string(exit.local_rank) + ") on node " +
                     std::to_string(exit.node_rank) + " (" + node + ") ";
  text += exit.signal != 0 ? "was killed by " + signal_name(exit.signal)
                           : "exited with code " + std::to_string(exit.code);
  text += std::string(" after ") + seconds;
  if (!exit.note.empty()) text += " (" + exit.note + ")";
  return text;
}

}  // namespace fleet
