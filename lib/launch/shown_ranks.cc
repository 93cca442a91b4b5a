#include "launch/shown_ranks.h"

#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

void read_list(const Settings& settings, const char* key, ShownRanks* shown,
               std::set<int>* numbers) {
  if (!settings.given(key)) return;
  shown->chosen = true;
  for (const std::string& part : split(settings.text(key), ',')) {
    if (part == "all") {
      shown->all = true;
      continue;
    }
    const size_t dash = part.find('-');
    long long first = 0, last = 0;
    const std::string low = part.substr(0, dash);
    const std::string high = dash == std::string::npos ? low : part.substr(dash + 1);
    if (!parse_int(low, &first) || !parse_int(high, &last) || first < 0 || last < first ||
        last - first > 1'000'000) {
      throw Error(ErrorCode::kUsage, "'" + part + "' is neither a rank nor a range of ranks",
                  settings.origin(key), "write it like 0,3-5, or all");
    }
    for (long long rank = first; rank <= last; ++rank) numbers->insert(static_cast<int>(rank));
  }
}

}  // namespace

ShownRanks read_shown_ranks(const Settings& settings) {
  ShownRanks shown;
  read_list(settings, "ranks", &shown, &shown.ranks);
  read_list(settings, "local_ranks_filter", &shown, &shown.local_ranks);
  return shown;
}

std::string line_prefix(const Assignment& assignment, int rank) {
  const std::string node = assignment.nnodes() > 1 ? " " + assignment.node().address : "";
  return "[rank " + std::to_string(rank) + node + "] ";
}

}  // namespace fleet
