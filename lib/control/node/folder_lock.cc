#include "node/folder_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/log.h"
#include "base/one_line.h"
#include "base/owned_file.h"

namespace fleet {

FolderLock::FolderLock(const std::string& folder, const std::string& who)
    : path_(folder + "/.fleetrun") {
  try {
    file_ = open_owned_file(path_, O_RDWR | O_CREAT, 0666);
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
    return;
  }
  // A lock of the open file, not of the process: a guardian that outlives its fleetrun still
  // writes.
  struct flock all {};
  all.l_type = F_WRLCK;
  if (::fcntl(file_.get(), F_OFD_SETLK, &all) == 0) {
    const bool written =
        ::ftruncate(file_.get(), 0) == 0 &&
        ::write(file_.get(), who.data(), who.size()) == static_cast<ssize_t>(who.size());
    (void)written;  // only informative
    return;
  }
  if (errno == EAGAIN || errno == EACCES) {
    char text[256];
    const ssize_t size = ::read(file_.get(), text, sizeof text);
    holder_ = size > 0 ? one_line({text, static_cast<size_t>(size)}, 200) : "another fleetrun";
  }
  file_.reset();
}

FolderLock::~FolderLock() {
  if (file_) ::unlink(path_.c_str());
}

}  // namespace fleet
