#include "node/rank_descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace fleet {
namespace {

constexpr size_t kPlaces = 4;  // input, output, error, service

// Those above the standard ones, without the one used for the listing.
std::vector<int> open_descriptors() {
  std::vector<int> all;
  DIR* folder = ::opendir("/proc/self/fd");
  if (!folder) return all;
  while (const dirent* entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (fd > STDERR_FILENO && fd != ::dirfd(folder)) all.push_back(fd);
  }
  ::closedir(folder);
  return all;
}

bool is_for_children(int fd) {
  const int flags = ::fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

}  // namespace

RankDescriptors::RankDescriptors() {
  if (::close_range(~0u, ~0u, 0) != 0) return;
  for (size_t i = 0; i <= kPlaces; ++i) {
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) throw_errno("cannot open /dev/null");
    if (i == kPlaces) {
      null_ = std::move(null);
    } else {
      bound_ = std::max(bound_, null.get() + 1);
      places_.push_back(std::move(null));
    }
  }
  for (const int fd : open_descriptors()) {
    if (is_for_children(fd)) bound_ = std::max(bound_, fd + 1);
  }
}

int RankDescriptors::duplicate(int fd) { return ::dup3(fd, places_[used_++].get(), O_CLOEXEC); }

// Otherwise the guardian would keep a rank's pipes open.
void RankDescriptors::release() {
  while (used_ > 0) ::dup3(null_.get(), places_[--used_].get(), O_CLOEXEC);
}

void close_parents_descriptors(std::span<const int> kept) {
  for (const int fd : open_descriptors()) {
    const bool keep = std::find(kept.begin(), kept.end(), fd) != kept.end();
    if (!keep && !is_for_children(fd)) ::close(fd);
  }
}

}  // namespace fleet
