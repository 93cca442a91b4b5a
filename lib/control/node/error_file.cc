#include "node/error_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr size_t kLongestFile = 1 << 20;

// "" if the file cannot be read.
std::string read_start(const std::string& path) {
  const UniqueFd file(
      ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string text(kLongestFile, '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t n = ::read(file.get(), text.data() + have, text.size() - have);
    if (n <= 0) break;
    have += static_cast<size_t>(n);
  }
  text.resize(have);
  return text;
}

std::string cause_text(const Json& object, const char* key) {
  const Json* found = object.find(key);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

// A number, or a string that holds one.
int64_t time_of(const Json& object) {
  const Json* found = object.find("timestamp");
  if (!found) return 0;
  if (found->is_number()) {
    const double seconds = found->get<double>();
    return seconds > 0 && seconds < 1e15 ? static_cast<int64_t>(seconds) : 0;
  }
  long long seconds = 0;
  return found->is_string() && parse_int(found->get<std::string>(), &seconds) ? seconds : 0;
}

}  // namespace

RecordedError read_error_file(const std::string& path) {
  if (path.empty()) return {};
  const auto file = Json::try_parse(read_start(path));
  const Json* found = file ? file->find("message") : nullptr;
  if (!found) return {};
  const Json& message = *found;
  RecordedError error;
  if (message.is_string()) {
    error.set_message(message.get<std::string>());
    error.set_unix_time(time_of(*file));
  }
  if (!message.is_object()) return error;
  error.set_message(cause_text(message, "message"));
  const Json* extra = message.find("extraInfo");
  if (extra && extra->is_object()) {
    error.set_callstack(cause_text(*extra, "py_callstack"));
    error.set_unix_time(time_of(*extra));
  }
  return error;
}

}  // namespace fleet
