#include "daemon/job_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/env.h"
#include "base/error.h"
#include "base/file_name.h"
#include "base/home_folder.h"
#include "base/log.h"
#include "launch/planning/addresses.h"
#include "launch/planning/refuse.h"
#include "rendezvous/types.h"
#include "transport/validate.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kSuffix[] = ".job", kLock[] = "lock";

// Whether the store wrote it: NAME.0123456789abcdef.job, or that with a suffix while it is written.
bool is_record(const std::string& name) {
  constexpr size_t kDigits = 16;
  const size_t end = name.rfind(kSuffix);
  if (end == std::string::npos || end < kDigits + 1) return false;
  const std::string rest = name.substr(end + std::strlen(kSuffix));
  const std::string digest = name.substr(end - kDigits, kDigits);
  return name[end - kDigits - 1] == '.' && (rest.empty() || rest.starts_with(".part.")) &&
         digest.find_first_not_of("0123456789abcdef") == std::string::npos;
}

JobStore::StoredJob read_stored_job(const std::string& path) {
  wire::StoredJob message;
  if (!message.ParseFromString(read_file(path)) || !message.has_job()) {
    throw Error(ErrorCode::kIo, "not a job record of this fleetd", path);
  }
  validate(message.job());
  JobStore::StoredJob stored{message.job(), ConsoleLog(kConsoleLogBytes)};
  for (const auto& output : message.console()) stored.console.add(output.error(), output.text());
  return stored;
}

}  // namespace

void ConsoleLog::add(bool error, std::string_view text) {
  constexpr size_t kChunkBytes = 4096;  // small pieces are merged to limit their overhead
  const bool joins = !chunks_.empty() && chunks_.back().error == error &&
                     chunks_.back().text.size() + text.size() <= kChunkBytes;
  if (joins) {
    chunks_.back().text += text;
  } else {
    chunks_.push_back({error, std::string(text)});
  }
  end_ += text.size();
  // A small chunk still costs the size of a Chunk.
  const auto too_much = [this] {
    return end_ - begin_ > limit_ || chunks_.size() > limit_ / sizeof(Chunk) + 1;
  };
  while (chunks_.size() > 1 && too_much()) {
    begin_ += chunks_.front().text.size();
    chunks_.pop_front();
  }
}

ConsoleLog::Chunk ConsoleLog::next(uint64_t* at, size_t max_bytes) const {
  *at = std::max(*at, begin_);
  uint64_t start = begin_;
  for (const Chunk& chunk : chunks_) {
    if (*at < start + chunk.text.size()) {
      Chunk found{chunk.error, chunk.text.substr(*at - start, max_bytes)};
      *at += found.text.size();
      return found;
    }
    start += chunk.text.size();
  }
  return {};
}

JobStore::JobStore(const std::string& folder) : folder_(fs::absolute(folder).string()) {
  make_directories(fs::path(folder_).parent_path().string());
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    throw_errno("cannot create the folder", folder_);
  }
  struct stat found;
  if (::stat(folder_.c_str(), &found) != 0) throw_errno("cannot inspect the folder", folder_);
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) {
    throw Error(ErrorCode::kIo, "the folder is not private to this user", folder_,
                "run chmod 700 on it, or choose another one with --state_dir");
  }
  lock_ = UniqueFd(
      ::open((folder_ + "/" + kLock).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_) throw_errno("cannot create the file", folder_ + "/" + kLock);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw_errno("cannot lock the folder", folder_);
    refuse("another fleetd uses this folder", folder_, "give each fleetd its own --state_dir");
  }
}

std::string JobStore::path_of(const std::string& job_id) const {
  google::protobuf::RepeatedPtrField<std::string> name;
  name.Add(std::string(job_id));
  char digest[24];
  std::snprintf(digest, sizeof digest, ".%016llx",
                static_cast<unsigned long long>(digest_of(name)));
  return folder_ + "/" + file_name_component(job_id) + digest + kSuffix;
}

void JobStore::save(const JobInfo& job, const ConsoleLog& console) {
  if (folder_.empty()) return;
  wire::StoredJob message;
  *message.mutable_job() = job;
  uint64_t at = console.begin();
  for (auto chunk = console.next(&at, kConsoleLogBytes); !chunk.text.empty();
       chunk = console.next(&at, kConsoleLogBytes)) {
    auto* output = message.add_console();
    output->set_error(chunk.error);
    output->set_text(std::move(chunk.text));
  }
  try {
    write_file_atomically(path_of(job.record().job_id()), message.SerializeAsString());
  } catch (const Error& error) {
    if (!std::exchange(warned_, true)) {
      spdlog::warn("fleetd forgets ended jobs at a restart: {}", error.what());
    }
  }
}

void JobStore::remove(const std::string& job_id) {
  if (!folder_.empty()) ::unlink(path_of(job_id).c_str());
}

std::vector<JobStore::StoredJob> JobStore::load() const {
  std::vector<StoredJob> all;
  if (folder_.empty()) return all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string path = entry.path().string();
    if (!is_record(entry.path().filename())) continue;  // not ours, perhaps the user's
    try {
      if (!path.ends_with(kSuffix)) throw Error(ErrorCode::kIo, "the record is incomplete", path);
      all.push_back(read_stored_job(path));
    } catch (const Error& wrong) {
      spdlog::warn("{}: removed", wrong.what());
      ::unlink(path.c_str());
    }
  }
  std::sort(all.begin(), all.end(), [](const StoredJob& a, const StoredJob& b) {
    return a.job.record().started() < b.job.record().started();
  });
  return all;
}

std::string default_job_store(const std::string& address, int port) {
  if (const auto systemd = get_env("STATE_DIRECTORY")) return *systemd;
  std::string state = get_env_path("XDG_STATE_HOME").value_or("");
  const std::string home = env_or("HOME", "");
  if (state.empty() && !home.empty()) state = home + "/.local/state";
  if (state.empty()) return {};
  // Nodes may share the home folder.
  return state + "/fleetrun/fleetd." +
         file_name_component(host_name() + "." + address + "." + std::to_string(port));
}

}  // namespace fleet
