#include "node/memory_record.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/home_folder.h"
#include "base/small_file.h"
#include "base/text.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

// As /proc/PID/fd shows it. Jobs of another FLEET_RUNTIME_DIR are not ours to list.
std::string name_of_memory() {
  constexpr size_t kMost = 200;  // the kernel allows 249 bytes
  const std::string folder = get_env_path("FLEET_RUNTIME_DIR").value_or("");
  return "fleetrun job:" + folder.substr(folder.size() - std::min(folder.size(), kMost));
}

// Launchers keep the name of their program; tests are launchers too.
bool may_be_launcher(const fs::path& process) {
  struct stat status = {};
  if (::stat(process.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return false;
  const std::string name = small_file(process / "comm");
  return name.starts_with("fleetrun") || name.starts_with("torchrun") ||
         name == small_file("/proc/self/comm");
}

void add_records_of(const fs::path& process, const std::string& wanted,
                    std::vector<std::string>* records) {
  std::error_code error;
  for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code closed;
    if (fs::read_symlink(entry->path(), closed).string() != wanted) continue;
    try {
      records->push_back(read_file(entry->path().string()));
    } catch (const Error&) {  // it has written a newer one, or ended
    }
  }
}

}  // namespace

UniqueFd make_memory_record(const std::string& record) {
  UniqueFd memory(::memfd_create(name_of_memory().c_str(), MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(record.size());
  if (memory && ::write(memory.get(), record.data(), record.size()) != size) memory.reset();
  return memory;
}

std::vector<std::string> find_memory_records() {
  std::vector<std::string> records;
  const std::string wanted = "/memfd:" + name_of_memory() + " (deleted)";
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    long long pid = 0;
    if (!parse_int(entry->path().filename().string(), &pid)) continue;
    if (may_be_launcher(entry->path())) add_records_of(entry->path(), wanted, &records);
  }
  return records;
}

}  // namespace fleet
