// The members of a tar file: ustar, GNU and pax headers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fleet::data {

struct TarMember {
  std::string name;
  uint64_t offset = 0, size = 0;  // of its content in the file
};

// Calls body for each regular file, in order. kIo naming the path if the file is damaged or ends
// early, kUsage if it is compressed or no tar file.
void for_each_tar_member(const std::string& path,
                         const std::function<void(const TarMember&)>& body);

// Reads `bytes` at `offset` of the file into `to`. kIo naming the path if it ends early.
void read_part(const std::string& path, void* to, uint64_t bytes, uint64_t offset);

}  // namespace fleet::data
