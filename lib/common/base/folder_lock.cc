#include "base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"

namespace fleet {

UniqueFd lock_folder(const std::string& folder, const std::string& program) {
  const std::string path = folder + "/.lock";
  UniqueFd file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  if (!file) throw_errno("cannot write into the folder", folder);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {  // a file system without locks
      spdlog::info("{}: {}; a second {} in this folder would go unnoticed", shown_path(path),
                   std::strerror(errno), program);
      break;
    }
    throw Error(ErrorCode::kUsage, "another " + program + " writes into this folder", folder,
                "wait for its end, or give another folder");
  }
  return file;
}

}  // namespace fleet
