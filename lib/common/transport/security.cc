#include "transport/security.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/home_folder.h"
#include "base/sync.h"
#include "base/text.h"
#include "base/text_file.h"

namespace fleet {
namespace {

constexpr std::string_view kTls = "tls ", kOpen = "open";

constexpr char kWays[] =
    "give it on every node: FLEET_JOB_SECRET in the environment, or --secret_file; or --insecure "
    "on a network you trust";

// Anyone who can read or replace the secret could start processes in our name. A file that root
// shares with our group is fine: Kubernetes mounts a Secret so in a pod with an fsGroup.
void refuse_shared(int fd, const std::string& path) {
  struct stat status;
  if (::fstat(fd, &status) != 0) throw_errno("cannot be examined", path);
  if (!S_ISREG(status.st_mode)) return;
  const bool from_root = status.st_uid == 0 && ::geteuid() != 0;
  const mode_t others = status.st_mode & (from_root ? 037 : 077);
  if (others != 0) {
    throw Error(ErrorCode::kUsage, "other users may read or change this secret", path,
                "chmod 600 " + path + "; defaultMode: 0400 for a Secret of Kubernetes");
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    throw Error(ErrorCode::kUsage, "this secret belongs to another user", path);
  }
}

}  // namespace

std::string to_text(const Security& security) {
  if (security.open()) return std::string(kOpen);
  return std::string(kTls) + security.secret;
}

Security security_from_text(std::string_view text) {
  if (text == kOpen) return {};
  if (text.starts_with(kTls) && text.size() >= kTls.size() + kMinSecret) {
    return {std::string(text.substr(kTls.size())), true, {}};
  }
  throw Error(ErrorCode::kUsage, "not the credentials of a job");
}

std::string new_secret() {
  char bytes[32];
  // Up to 256 bytes arrive completely or not at all.
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw_errno("no random numbers");
  return hex({bytes, sizeof bytes});
}

std::string checked_secret(std::string_view text, const std::string& origin) {
  const std::string_view secret = trim(text);
  if (secret.size() < kMinSecret || secret.size() > 4096) {
    throw Error(ErrorCode::kUsage,
                "a secret has " + std::to_string(kMinSecret) + " to 4096 characters, not " +
                    std::to_string(secret.size()),
                origin, "`fleetrun secret --new` prints one");
  }
  return std::string(secret);
}

std::string default_secret_path() {
  if (const auto folder = get_env_path("XDG_CONFIG_HOME")) return *folder + "/fleetrun/secret";
  if (const auto home = get_env("HOME")) return *home + "/.config/fleetrun/secret";
  const passwd* user = ::getpwuid(::geteuid());
  return user ? std::string(user->pw_dir) + "/.config/fleetrun/secret" : std::string();
}

std::string read_secret(const std::string& path) {
  const std::string input = "standard input";
  if (path == "-") return checked_secret(plain_text(read_small(STDIN_FILENO, input), input), input);
  return checked_secret(read_private_file(path), path);
}

bool make_secret(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return false;
  const std::string folder = path.substr(0, path.rfind('/'));
  make_directories(folder.substr(0, folder.rfind('/')));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw_errno("the folder cannot be created", folder);
  }
  // A hard link appears with its content and only if no secret exists, also on NFS.
  const std::string text = new_secret() + "\n", draft = path + "." + new_secret().substr(0, 16);
  {
    const UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) throw_errno("cannot be created", draft);
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        (::fsync(file.get()) != 0 && !is_not_supported(errno))) {
      const int error = errno;
      ::unlink(draft.c_str());
      errno = error;
      throw_errno("cannot be written", draft);
    }
  }
  const bool made = ::link(draft.c_str(), path.c_str()) == 0;
  const int error = errno;
  ::unlink(draft.c_str());
  errno = error;
  if (!made && error != EEXIST) throw_errno("cannot be created", path);
  return made;
}

FoundSecret find_secret(const std::string& file, bool make) {
  if (!file.empty()) {
    try {
      return {{read_secret(file), true, "--secret_file " + file}};
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kUsage) throw;
      throw Error(ErrorCode::kUsage, error.failure(), "--secret_file " + file, kWays);
    }
  }
  if (const auto text = get_env(kEnvJobSecret)) {
    return {{checked_secret(*text, kEnvJobSecret), true, kEnvJobSecret}};
  }
  const std::string path = default_secret_path();
  if (path.empty()) throw Error(ErrorCode::kUsage, "this job needs a secret", {}, kWays);
  FoundSecret found;
  try {
    found.made = make && make_secret(path);
    found.security = {read_secret(path), true, path};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUsage) throw;
    throw Error(ErrorCode::kUsage, "this job needs a secret, and " + error.failure(), error.where(),
                kWays);
  }
  return found;
}

std::string read_small(int fd, const std::string& path) {
  std::string text;
  char block[4096];
  ssize_t count = 0;
  while (text.size() < (1 << 16) && (count = ::read(fd, block, sizeof block)) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("cannot be read", path);
    text.append(block, static_cast<size_t>(count));
  }
  return text;
}

std::string read_private_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) throw Error(ErrorCode::kNotFound, "there is no such file", path);
  if (!file) throw_errno("cannot be opened", path);
  refuse_shared(file.get(), path);
  return plain_text(read_small(file.get(), path), path);
}

}  // namespace fleet
