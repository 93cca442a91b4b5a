// Who writes into a folder of logs: where nodes share a file system, a second one would mix its
// output into the first one's files and rename them.
#pragma once

#include <string>

#include "base/file.h"

namespace fleet {

class FolderClaim {
 public:
  // Takes the folder in the name of `who` ("node 1 of job 'x'") for as long as this lives: a lock
  // on a file in it, which NFS knows too. Where that cannot be had nothing is known of others.
  FolderClaim(const std::string& folder, const std::string& who);
  ~FolderClaim();
  FolderClaim(const FolderClaim&) = delete;

  // Who had it already, in that one's own words; "" where nobody had.
  const std::string& other() const { return other_; }

 private:
  std::string path_, other_;
  UniqueFd file_;  // locked; none where another has it
};

}  // namespace fleet
