#include "data/maker_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/regular_file.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet::data {

constexpr double kLineSeconds = 10;

MakerLock::MakerLock(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
  if (!file_) throw_errno("cannot write into the folder of the cache", path);
}

bool MakerLock::take() {
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    spdlog::info("{}: {}; other ranks may make the same file", shown_path(path_),
                 std::generic_category().message(errno));
    return true;
  }
  return true;
}

void MakerLock::wait(const std::string& doing) {
  double said = -kLineSeconds;
  while (!take()) {
    if (monotonic_seconds() - said >= kLineSeconds) {
      said = monotonic_seconds();
      const std::string reached = progress();
      spdlog::info("waiting for another process, {}{}", doing,
                   reached.empty() ? "" : ": " + shown_name(reached));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void MakerLock::publish(const std::string& progress) {
  const std::string line = progress + "\n";
  if (::ftruncate(file_.get(), 0) != 0) return;
  if (::pwrite(file_.get(), line.data(), line.size(), 0) < 0) return;  // only for messages
}

std::string MakerLock::progress() const {
  std::array<char, 256> text{};
  const ssize_t got = ::pread(file_.get(), text.data(), text.size(), 0);
  return got <= 0 ? "" : std::string(trim(std::string_view(text.data(), got)));
}

void MakerLock::remove() { ::unlink(path_.c_str()); }

void make_once(const std::string& path, const std::string& doing,
               const std::function<void(MakerLock& lock)>& make) {
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown)) return;
  make_directories(std::filesystem::path(path).parent_path().string());
  MakerLock lock(path + ".lock");
  lock.wait(doing);
  if (std::filesystem::exists(path, unknown)) return;
  make(lock);
  lock.remove();
}

uint64_t hash_file_state(const std::string& path, int64_t modified, uint64_t seed) {
  constexpr int64_t kPieces = 16, kPiece = 1 << 16;
  const RegularFile open = open_regular_file(path);
  uint64_t hash = hash_bytes(&open.size, sizeof open.size, seed);
  hash = hash_bytes(&modified, sizeof modified, hash);
  std::vector<char> piece(kPiece);
  for (int64_t i = 0; i < kPieces; ++i) {
    const int64_t at = std::max<int64_t>(open.size - kPiece, 0) * i / (kPieces - 1);
    const size_t got = read_at(open.fd, piece.data(), piece.size(), at, path);
    hash = hash_bytes(piece.data(), got, hash);
    if (open.size <= kPiece) break;
  }
  return hash;
}

}  // namespace fleet::data
