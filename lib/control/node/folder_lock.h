// Detects a second job that writes to a log folder: on a shared file system, it would mix its
// output into the first one's files and rename them.
#pragma once

#include <string>

#include "base/file.h"

namespace fleet {

class FolderLock {
 public:
  // Claims the folder in the name of `who` ("node 1 of job 'x'") for the lifetime of this object,
  // by a lock on a file in it, which NFS supports too. Without the lock, other claims go
  // undetected.
  FolderLock(const std::string& folder, const std::string& who);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

  // The existing claimant, in its own words; "" if there was none.
  const std::string& holder() const { return holder_; }

 private:
  std::string path_, holder_;
  UniqueFd file_;  // locked; empty if another claimant has it
};

}  // namespace fleet
