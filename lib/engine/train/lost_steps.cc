#include "train/lost_steps.h"

#include <algorithm>
#include <fstream>

#include "base/json.h"
#include "base/log.h"

namespace fleet {

int64_t recorded_steps_after(const std::string& folder, int64_t step) {
  constexpr std::streamoff kEnough = 1 << 18;  // bytes from the end: many lines of steps
  std::ifstream file(folder + "/metrics.jsonl", std::ios::binary);
  if (!file.seekg(0, std::ios::end)) return 0;
  file.seekg(std::max<std::streamoff>(file.tellg() - std::streampos(kEnough), 0));
  int64_t last = step;
  for (std::string line; std::getline(file, line);) {
    try {
      const Json event = Json::parse(line);
      if (event.value("event", std::string()) == "train") last = event.at("step").get<int64_t>();
    } catch (const JsonError&) {  // cut off, by the offset or by a crash
    }
  }
  return std::max<int64_t>(last - step, 0);
}

void log_lost_updates(const std::string& folder, const TrainingPosition& at) {
  const int64_t lost = recorded_steps_after(folder, at.step);
  if (lost == 0) return;
  spdlog::warn(
      "the servers' updates after step {} are lost, of about {} samples; trainer 0 had come to "
      "step {}. These steps are trained again",
      at.step, lost * at.global_batch, at.step + lost);
}

}  // namespace fleet
