#include "base/process_title.h"

#include <errno.h>  // program_invocation_name
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace fleet {
namespace {

// The strings of this program's start, which the kernel has put one behind the other.
struct StartStrings {
  char* begin = nullptr;
  size_t arguments = 0;  // bytes
  size_t all = 0;        // with the unchanged part of the environment
};

StartStrings start_strings() {
  const std::string arguments = read_file("/proc/self/cmdline");
  const std::string environment = read_file("/proc/self/environ");
  char* const begin = program_invocation_name;
  // Not if the program has changed them, or where they are.
  if (arguments.empty() || std::strcmp(begin, arguments.c_str()) != 0) return {};
  if (std::memcmp(begin, arguments.data(), arguments.size()) != 0) return {};
  char* const behind = begin + arguments.size();
  const bool follows = environ && *environ == behind && !environment.empty() &&
                       std::memcmp(behind, environment.data(), environment.size()) == 0;
  return {begin, arguments.size(), arguments.size() + (follows ? environment.size() : 0)};
}

// Variables in this room get another place.
void keep_environment(const char* begin, const char* end) {
  for (char** variable = environ; variable && *variable; ++variable) {
    if (*variable >= begin && *variable < end) *variable = ::strdup(*variable);
  }
}

}  // namespace

void set_process_title(const std::string& title) {
  static const StartStrings strings = [] {
    try {
      return start_strings();
    } catch (const Error&) {  // without /proc
      return StartStrings{};
    }
  }();
  if (!strings.begin) return;
  const size_t size = std::min(title.size(), strings.all - 1);
  keep_environment(strings.begin, strings.begin + size + 1);
  std::memset(strings.begin, 0, std::max(strings.arguments, size + 1));
  std::memcpy(strings.begin, title.data(), size);
}

}  // namespace fleet
