// Files that one process of a machine makes, while the others wait for it. Internal to data.
#pragma once

#include <functional>
#include <string>

#include "base/file.h"

namespace fleet::data {

// The maker keeps this file locked, and writes its progress into it.
class MakerLock {
 public:
  // kIo if the file cannot be written.
  explicit MakerLock(const std::string& path);
  // Whether this process is the maker now. Without locks (an old NFS) there may be several makers:
  // each writes its own file, and the last rename wins.
  bool take();
  // Waits until this process is the maker. doing: what the other process does, for a line every
  // 10 s: "which tokenizes a.txt".
  void wait(const std::string& doing);
  void publish(const std::string& progress);
  // Processes that wait have the file open, and find the result.
  void remove();

 private:
  std::string progress() const;

  const std::string path_;
  UniqueFd file_;
};

// The path, made by one of the processes that call this: `make` writes the file under another name
// and renames it. doing: as for MakerLock::wait(). kIo; rethrows the errors of `make`.
void make_once(const std::string& path, const std::string& doing,
               const std::function<void(MakerLock& lock)>& make);

// For the name of a file made from another: a hash of that file's size, time, and content at some
// places (reading all of a large file would take minutes). kNotFound, kIo, kUsage.
uint64_t hash_file_state(const std::string& path, int64_t modified, uint64_t seed);

}  // namespace fleet::data
