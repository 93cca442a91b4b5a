#include <algorithm>
#include <map>

#include "base/ranges.h"
#include "diagnosis/collective_waits.h"

namespace fleet {
namespace {

constexpr size_t kMaxNotes = 8;

using Ranks = std::map<std::string, std::vector<int>>;  // by their common path or reason

std::string text_of(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranges_text(ranks);
}

}  // namespace

std::vector<std::string> flight_notes(const Stacks& all) {
  Ranks dumps, missing;
  std::vector<int> off;
  for (const RankCollectives& rank : all.collectives()) {
    if (!rank.dump().empty()) dumps[rank.dump()].push_back(rank.rank());
    if (!rank.missing().empty()) missing[rank.missing()].push_back(rank.rank());
    if (rank.recorder_off()) off.push_back(rank.rank());
  }
  std::vector<std::string> notes, others;
  for (const auto& [why, ranks] : missing) {
    notes.push_back("no dump of PyTorch's flight recorder from " + text_of(ranks) + ": " + why);
  }
  for (const auto& [path, ranks] : dumps) {
    others.push_back("dumps of PyTorch's flight recorder: " + path + "N, " + text_of(ranks));
  }
  if (!off.empty()) {
    others.push_back("to see in which collectives " + text_of(off) +
                     (off.size() == 1 ? " waits" : " wait") +
                     ", start the job with TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/fr_${USER}_, "
                     "TORCH_NCCL_DUMP_ON_TIMEOUT=1 and TORCH_FR_BUFFER_SIZE=2000 (older PyTorch: "
                     "TORCH_NCCL_TRACE_BUFFER_SIZE=2000)");
  }
  // Reasons may differ from rank to rank, by the paths in them: they leave a place for the others.
  others.resize(std::min(others.size(), kMaxNotes));
  notes.resize(std::min(notes.size(), kMaxNotes - others.size()));
  notes.insert(notes.end(), others.begin(), others.end());
  return notes;
}

}  // namespace fleet
