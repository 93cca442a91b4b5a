#include "rendezvous/types.h"

#include <string.h>

#include <cstdio>
#include <mutex>

namespace fleet {

uint64_t digest_of(const std::vector<std::string>& addresses) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: detects mistakes, not attacks
  const auto mix = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const std::string& address : addresses) {
    for (const char c : address) mix(static_cast<unsigned char>(c));
    mix(0);
  }
  return hash | 1;
}

struct SharedWorld::Packed {
  std::once_flag once;
  Unpack unpack;
  std::shared_ptr<const World> world;
};

SharedWorld::SharedWorld(Unpack unpack) : packed_(std::make_shared<Packed>()) {
  packed_->unpack = std::move(unpack);
}

const std::shared_ptr<const World>& SharedWorld::share() const {
  if (!packed_) return world_;
  std::call_once(packed_->once, [this] { packed_->world = packed_->unpack(); });
  return packed_->world;
}

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
    case VerdictKind::kNoProgress:
      return "no progress";
    case VerdictKind::kResized:
      return "resized";
  }
  return "?";
}

bool names_rank(const Verdict& verdict) {
  return verdict.kind == VerdictKind::kRankFailed || verdict.kind == VerdictKind::kHang ||
         (verdict.kind == VerdictKind::kNoProgress && verdict.exit.rank >= 0);
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
    case VerdictKind::kNoProgress:
      return kExitNoProgress;
    case VerdictKind::kResized:
      break;
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

std::string headline(const RankExit& exit, int world_size, int nnodes) {
  std::string text = (exit.server ? "server " : "rank ") + std::to_string(exit.rank) + " of " +
                     std::to_string(world_size);
  text += exit.signal != 0 ? " was killed by " + signal_name(exit.signal)
                           : " exited with " + std::to_string(exit.code);
  const std::string& why = exit.cause.empty() ? exit.note : exit.cause;
  if (!why.empty()) text += ": " + why;
  if (exit.log_path.empty()) return text;
  text += " (" + exit.log_path;
  if (nnodes > 1) text += " on node " + std::to_string(exit.node_rank);
  return text + ")";
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
