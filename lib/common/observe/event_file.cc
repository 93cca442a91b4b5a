#include "observe/event_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/owned_file.h"

namespace fleet {

namespace {

bool ends_within_a_line(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

}  // namespace

std::string EventLine::json(double time) const {
  Json line;
  line["event"] = kind_;
  line["time"] = std::round(time * 1000) / 1000;
  for (const auto& [name, value] : values_) {
    line[name] = std::visit([](const auto& v) { return Json(v); }, value);
  }
  return line.dump_lossy();
}

EventFile::EventFile(const std::string& path) : path_(path) { open(); }

void EventFile::open() {
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  if (!folder.empty()) make_directories(folder);
  fd_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd_) throw_errno("cannot open the event file", path_);
  if (ends_within_a_line(fd_.get())) write_all(fd_.get(), "\n", path_);
}

void EventFile::write(const EventLine& event) { write(event, unix_seconds()); }

void EventFile::write(const EventLine& event, double time) {
  const std::string line = event.json(time) + "\n";
  const MutexLock lock(mutex_);
  struct stat status = {}, there = {};
  const bool open_still = fd_ && ::fstat(fd_.get(), &status) == 0 &&
                          ::stat(path_.c_str(), &there) == 0 && there.st_ino == status.st_ino &&
                          there.st_dev == status.st_dev;
  if (!open_still) {  // the file was removed or moved away, perhaps with its folder
    fd_.reset();
    open();
    status.st_size = ::lseek(fd_.get(), 0, SEEK_END);
  }
  try {
    write_all(fd_.get(), line, path_);
  } catch (const Error&) {  // leave no partial line behind, for example on a full disk
    (void)!::ftruncate(fd_.get(), status.st_size);
    throw;
  }
}

}  // namespace fleet
