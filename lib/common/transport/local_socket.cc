#include "transport/local_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/proc_number.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr std::string_view kPrefix = "rendezvous.", kEnding = ".sock", kUnfinished = ".new";

UniqueFd unix_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// `path` fits.
Name path_name(const std::string& path) {
  Name name;
  name.address.sun_family = AF_UNIX;
  std::memcpy(name.address.sun_path, path.data(), path.size());
  name.size = sizeof name.address;
  return name;
}

// A path to a file in an open folder, short even if the folder's own path is long.
std::string short_path(const std::string& process, int folder, const std::string& file) {
  return "/proc/" + process + "/fd/" + std::to_string(folder) + "/" + file;
}

// gRPC reads addresses as URIs.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("/._-").find(c) != std::string_view::npos;
}

std::string unique_word() {
  char bytes[4] = {};
  (void)::getrandom(bytes, sizeof bytes, 0);
  return std::to_string(::getpid()) + "." + hex({bytes, sizeof bytes});
}

// Processes in other pid namespaces may share the folder: only connecting to the socket is
// conclusive.
bool is_dead(int folder, const std::string& file) {
  const pid_t pid = std::atoi(file.c_str() + kPrefix.size());
  if (pid <= 0 || ::kill(pid, 0) == 0 || errno == EPERM) return false;
  const Name name = path_name(short_path("self", folder, file));
  const UniqueFd probe = unix_socket();
  return ::connect(probe.get(), name.get(), name.size) != 0 && errno == ECONNREFUSED;
}

void remove_dead(int folder) {
  DIR* all = ::fdopendir(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!all) return;
  while (const dirent* entry = ::readdir(all)) {
    const std::string file = entry->d_name;
    if (!file.starts_with(kPrefix) || !file.ends_with(kEnding)) continue;
    if (file.size() < 64 && is_dead(folder, file)) ::unlinkat(folder, file.c_str(), 0);
  }
  ::closedir(all);
}

}  // namespace

void remove_dead_local_sockets(const std::string& folder) {
  const UniqueFd opened(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (opened) remove_dead(opened.get());
}

LocalSocket LocalSocket::listen(const std::string& folder) {
  LocalSocket socket;
  if (folder.empty() || !socket.listen_in(folder)) socket.listen_abstract();
  return socket;
}

LocalSocket& LocalSocket::operator=(LocalSocket&& other) noexcept {
  if (this == &other) return *this;
  file_ = std::move(other.file_);  // first: it removes its file from the old folder
  listener_ = std::move(other.listener_);
  folder_ = std::move(other.folder_);
  address_ = std::exchange(other.address_, {});
  return *this;
}

// Binds under a temporary name until it listens: other processes treat a socket that does not
// listen as dead.
bool LocalSocket::listen_in(const std::string& folder) {
  folder_ = UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  listener_ = unix_socket();
  if (!folder_ || !listener_) return false;
  remove_dead(folder_.get());
  const std::string word = std::string(kPrefix) + unique_word();
  const std::string unfinished = word + std::string(kUnfinished);
  const Name name = path_name(short_path("self", folder_.get(), unfinished));
  const std::string file = word + std::string(kEnding);
  const bool bound = ::bind(listener_.get(), name.get(), name.size) == 0;
  if (!bound || ::fchmodat(folder_.get(), unfinished.c_str(), 0600, 0) != 0 ||
      ::listen(listener_.get(), INT_MAX) != 0 ||
      ::renameat(folder_.get(), unfinished.c_str(), folder_.get(), file.c_str()) != 0) {
    spdlog::debug("{}: cannot create a socket there: {}", folder, std::strerror(errno));
    if (bound) ::unlinkat(folder_.get(), unfinished.c_str(), 0);
    return false;
  }
  file_ = OwnFile(folder_.get(), file);
  std::string path = folder + "/" + file;
  const bool usable = path.starts_with('/') && path.size() < sizeof name.address.sun_path &&
                      std::all_of(path.begin(), path.end(), is_plain);
  if (!usable) path = short_path(std::to_string(own_proc_number()), folder_.get(), file);
  address_ = "unix:" + path;
  return true;
}

void LocalSocket::listen_abstract() {
  folder_.reset();
  listener_ = unix_socket();
  const std::string word = "fleetrun/rendezvous/" + unique_word();
  Name name;
  name.address.sun_family = AF_UNIX;
  std::memcpy(name.address.sun_path + 1, word.data(), word.size());
  name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + word.size());
  if (!listener_ || ::bind(listener_.get(), name.get(), name.size) != 0 ||
      ::listen(listener_.get(), INT_MAX) != 0) {
    throw_errno("cannot listen on a Unix socket", word);
  }
  address_ = "unix-abstract:" + word;
}

bool is_local_address(std::string_view address) {
  return address.starts_with("unix:") || address.starts_with("unix-abstract:");
}

bool is_own_peer(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

}  // namespace fleet
