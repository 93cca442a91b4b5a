#include <atomic>
#include <climits>

#include "base/env.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/thread.h"

namespace fleet {

std::optional<int> openmp_threads() {
  const auto text = get_env("OMP_NUM_THREADS");
  if (!text || trim(*text).empty()) return std::nullopt;
  std::vector<int> numbers;
  for (const std::string& part : split(*text, ',')) {
    long long number = 0;
    if (!parse_int(trim(part), &number) || number < 1 || number > INT_MAX) break;
    numbers.push_back(static_cast<int>(number));
  }
  if (numbers.size() == split(*text, ',').size()) return numbers.front();
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    spdlog::warn("OMP_NUM_THREADS={} is ignored: write one number from 1, or a list such as 4,2",
                 shown_name(*text));
  }
  return std::nullopt;
}

}  // namespace fleet
