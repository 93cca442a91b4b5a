#include "base/owned_file.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file_status.h"
#include "base/sync.h"

namespace fleet {
namespace {

constexpr int kMaxLinks = 40;  // the kernel's limit

[[noreturn]] void refuse_owned(const std::string& what, const std::string& path,
                               const std::string& next) {
  throw Error(ErrorCode::kUsage, what, path, next);
}

[[noreturn]] void fail(const char* what, const std::string& path) {
  throw SystemError(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, what, errno, path);
}

bool is_trusted(uid_t user) { return user == 0 || user == ::geteuid(); }

struct Folder {
  UniqueFd fd;
  struct stat status = {};
  std::string path;  // the path walked so far

  std::string entry(const std::string& name) const {
    return path.empty() ? name : path.ends_with('/') ? path + name : path + "/" + name;
  }
};

// Resolves a path one entry at a time, as the kernel would.
class Walk {
 public:
  explicit Walk(const std::string& path) : path_(path) {
    add(path);
    while (!names_.empty()) {
      std::string name = std::move(names_.back());
      names_.pop_back();
      if (!name.empty() && name != ".") step(name);
    }
    if (!planted_.empty() && !is_trusted(here_.status.st_uid)) {
      refuse_owned(
          "it belongs to " + name_of_user(planter_) + ", in a folder that everyone may write",
          planted_, "name a folder of your own");
    }
  }
  Folder take() && { return std::move(here_); }

 private:
  void add(const std::string& path) {
    if (path.starts_with('/') || !here_.fd) start(path.starts_with('/') ? "/" : ".");
    for (size_t end = path.size(); end != std::string::npos;) {  // the first name ends up last
      const size_t slash = end == 0 ? std::string::npos : path.rfind('/', end - 1);
      const size_t begin = slash == std::string::npos ? 0 : slash + 1;
      names_.push_back(path.substr(begin, end - begin));
      end = slash;
    }
  }

  void start(const char* path) {
    here_.path = *path == '/' ? path : "";
    here_.fd = UniqueFd(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!here_.fd || ::fstat(here_.fd.get(), &here_.status) != 0) {
      fail("cannot open the folder", path_);
    }
  }

  void step(const std::string& name) {
    Folder next;
    next.path = here_.entry(name);
    // With O_DIRECTORY an automount point gets mounted.
    const auto open = [&](int flags) {
      return UniqueFd(
          ::openat(here_.fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC | flags));
    };
    next.fd = open(O_DIRECTORY);
    if (!next.fd && errno == ENOTDIR) next.fd = open(0);
    if (!next.fd || ::fstat(next.fd.get(), &next.status) != 0) {
      fail("cannot open the folder", next.path);
    }
    if (name != "..") check(next);
    if (S_ISLNK(next.status.st_mode)) return follow(next);
    if (!S_ISDIR(next.status.st_mode)) {
      errno = ENOTDIR;
      fail("cannot open the folder", next.path);
    }
    here_ = std::move(next);
  }

  void check(const Folder& entry) {
    const uid_t owner = entry.status.st_uid;
    const bool link = S_ISLNK(entry.status.st_mode);
    if (is_trusted(owner)) return;
    const bool open_to_all = (here_.status.st_mode & S_IWOTH) != 0;
    const bool planted = open_to_all && owner != here_.status.st_uid;
    if (link && (planted || !planted_.empty())) {
      refuse_owned("it is a link of " + name_of_user(owner) + ", in a folder that others may write",
                   entry.path, "remove it, or name a folder of your own");
    }
    if (!planted || !planted_.empty()) return;
    planted_ = entry.path;
    planter_ = owner;
  }

  void follow(const Folder& link) {
    char target[PATH_MAX];
    const ssize_t size = ::readlinkat(link.fd.get(), "", target, sizeof target);
    if (size > 0 && ++links_ > kMaxLinks) errno = ELOOP;
    if (size <= 0 || links_ > kMaxLinks) fail("cannot follow the link", link.path);
    add(std::string(target, static_cast<size_t>(size)));
  }

  const std::string path_;
  Folder here_;
  std::vector<std::string> names_;  // remaining names; the next one is last
  int links_ = 0;
  std::string planted_;  // an entry made by an untrusted user; everything below it is untrusted too
  uid_t planter_ = 0;
};

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of_owned(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Folder open_folder_of(const std::string& path) { return Walk(folder_of(path)).take(); }

void check_file(const std::string& path, const struct stat& file, const struct stat& folder) {
  constexpr char kNext[] = "remove it, or name another folder";
  if (S_ISLNK(file.st_mode)) {
    refuse_owned("it is a symbolic link, and links are not written through", path, kNext);
  }
  if (!S_ISREG(file.st_mode)) {
    refuse_owned(std::string("it is ") + kind_of_file(file.st_mode), path, kNext);
  }
  if (!is_trusted(file.st_uid) && file.st_uid != folder.st_uid) {
    refuse_owned("it belongs to " + name_of_user(file.st_uid), path, kNext);
  }
  // The hard link may point to any file of this user.
  const bool shared = (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0 || !is_trusted(folder.st_uid);
  if (file.st_nlink > 1 && shared) {
    refuse_owned("it has a second name (hard link), in a folder that others may write", path,
                 kNext);
  }
}

// Checks that the file could be written.
void check_entry(const Folder& folder, const std::string& path) {
  const std::string name = name_of_owned(path);
  struct stat status = {};
  if (::fstatat(folder.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    fail("cannot inspect the file", path);
  }
  check_file(path, status, folder.status);
  if (::faccessat(folder.fd.get(), name.c_str(), W_OK, AT_EACCESS) != 0) {
    fail("cannot be written", path);
  }
}

// A file without a name, which goes with its process; nothing where the file system has no such
// files, or no /proc from which give_name() could link it.
UniqueFd nameless_file(int folder, mode_t mode) {
  if (::access("/proc/self/fd", X_OK) != 0) return {};
  return UniqueFd(::openat(folder, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode));
}

bool give_name(const UniqueFd& file, int folder, const std::string& name) {
  const std::string link = "/proc/self/fd/" + std::to_string(file.get());
  return ::linkat(AT_FDCWD, link.c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace

UniqueFd open_owned_folder(const std::string& path) { return std::move(Walk(path).take().fd); }

UniqueFd open_owned_file(const std::string& path, int flags, mode_t mode) {
  const Folder folder = open_folder_of(path);
  const std::string name = name_of_owned(path);
  const auto open = [&](int more) {
    // O_NONBLOCK: do not wait for the reader of a pipe.
    return UniqueFd(::openat(folder.fd.get(), name.c_str(),
                             more | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode));
  };
  // A file that we just created is ours, whatever owner a file server reports.
  if ((flags & O_CREAT) != 0) {
    if (UniqueFd made = open(flags | O_EXCL)) return made;
  }
  const int reason = (flags & O_CREAT) != 0 ? errno : ENOENT;
  struct stat status = {};
  if (::fstatat(folder.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) errno = reason;
    fail("cannot open the file", path);
  }
  check_file(path, status, folder.status);
  UniqueFd file = open(flags & ~O_CREAT);
  if (!file || ::fstat(file.get(), &status) != 0) fail("cannot open the file", path);
  check_file(path, status, folder.status);
  return file;
}

void check_owned_files(const std::vector<std::string>& paths) {
  Folder folder;
  std::string reached;
  for (const std::string& path : paths) {
    try {
      if (std::string next = folder_of(path); !folder.fd || next != reached) {
        folder = Walk(next).take();
        reached = std::move(next);
      }
      check_entry(folder, path);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
    }
  }
}

void write_owned_file(const std::string& path, std::string_view content, mode_t mode) {
  const UniqueFd file = open_owned_file(path, O_WRONLY | O_CREAT, mode);
  if (::ftruncate(file.get(), 0) != 0) fail("cannot be written", path);
  write_all(file.get(), content, path);
}

void write_all(int file, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(file, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("cannot write the file", path);
    content.remove_prefix(static_cast<size_t>(n));
  }
}

void replace_file(int folder, const std::string& path, std::string_view content,
                  const ReplaceOptions& options) {
  const std::string name = name_of_owned(path);
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::string aside =
      name + ".part." + std::to_string(::getpid()) + "." + std::to_string(now.tv_nsec);
  const auto write = [&](const UniqueFd& file) {
    write_all(file.get(), content, path);
    if (options.sync) sync_file(file.get(), path);
  };
  const UniqueFd nameless = nameless_file(folder, options.mode);
  if (nameless) write(nameless);
  try {
    if (!nameless || !give_name(nameless, folder, aside)) {
      const UniqueFd fd(::openat(folder, aside.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 options.mode));
      if (!fd) throw_errno("cannot create the file", path);
      write(fd);
    }
    if (::renameat(folder, aside.c_str(), folder, name.c_str()) != 0) {
      throw_errno("cannot rename the new file into place", path);
    }
  } catch (const Error&) {
    ::unlinkat(folder, aside.c_str(), 0);
    throw;
  }
}

void replace_owned_file(const std::string& path, std::string_view content,
                        const ReplaceOptions& options) {
  const Folder folder = open_folder_of(path);
  replace_file(folder.fd.get(), path, content, options);
}

std::string name_of_user(uid_t user) {
  const passwd* entry = ::getpwuid(user);
  return entry ? "user '" + std::string(entry->pw_name) + "'" : "uid " + std::to_string(user);
}

}  // namespace fleet
