#include "launch/planning/shown_ranks.h"

#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "launch/planning/torchrun/translate.h"

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

// torchrun's notation: 0 (none), 1, 2 or 3 for all ranks, or for some: "0:1,2:3".
RankStreams read_streams(const Settings& settings, const char* key) {
  RankStreams streams;
  if (!settings.given(key)) return streams;
  const auto refuse = [&](const std::string& part) {
    throw Error(
        ErrorCode::kUsage, "'" + part + "' is not a choice of streams", settings.origin(key),
        "use 1 for standard output, 2 for standard error, 3 for both, or by local rank 0:3,2:1");
  };
  const std::vector<std::string> parts = split(settings.text(key), ',');
  for (const std::string& part : parts) {
    const size_t colon = part.find(':');
    const bool of_rank = colon != std::string::npos;
    long long rank = 0, which = 0;
    if (!parse_int(part.substr(of_rank ? colon + 1 : 0), &which) || which < 0 || which > 3 ||
        (of_rank && (!parse_int(part.substr(0, colon), &rank) || rank < 0 || rank > 1 << 20)) ||
        (!of_rank && parts.size() > 1)) {
      refuse(part);
    }
    (of_rank ? streams.by_rank[static_cast<int>(rank)] : streams.others) = static_cast<int>(which);
  }
  return streams;
}

}  // namespace

ShownRanks read_shown_ranks(const Settings& settings) {
  ShownRanks shown;
  read_list(settings, "ranks", &shown, &shown.ranks);
  read_list(settings, "local_ranks_filter", &shown, &shown.local_ranks);
  const bool as_torchrun = is_torchrun_mode(settings);
  const bool streams = settings.given("tee") || settings.given("redirects");
  if ((streams || as_torchrun) && !shown.chosen) shown.chosen = shown.all = true;
  shown.tee = read_streams(settings, "tee");
  shown.redirects = read_streams(settings, "redirects");
  shown.labels = as_torchrun ? shown.tee : RankStreams{shown.chosen ? 3 : 0, {}};
  return shown;
}

}  // namespace fleet
