#include "text_command.h"

#include <cstdio>

#include "base/error.h"
#include "base/number_text.h"

namespace fleet {

std::string required_path(const Settings& given, const std::string& key,
                          const std::string& command) {
  if (!given.text(key).empty()) return given.text(key);
  throw Error(ErrorCode::kUsage, "--" + key + " is missing", command,
              "give a file: see fleetrun " + command + " --help");
}

int64_t in_mib(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

std::string count_text(int64_t count) {
  if (count < 1'000'000) return std::to_string(count);
  return number_text(static_cast<double>(count) / 1e6, count < 100'000'000 ? 3 : 6) + " million";
}

void write_progress(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace fleet
