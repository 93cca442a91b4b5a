#include "daemon/file_watcher.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/file.h"

namespace fleet {

FileWatcher::FileWatcher(EventLoop& loop) : inotify_(loop) {
  const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) throw_errno("cannot watch files (inotify)", {}, Wanted::kWatch);
  inotify_.assign(UniqueFd(fd));
  wait();
}

int FileWatcher::add(const std::string& path, uint32_t mask,
                     std::function<void(const std::string&)> changed) {
  // All watches of a folder share one mask.
  const int descriptor =
      ::inotify_add_watch(inotify_.get(), path.c_str(), mask | IN_ONLYDIR | IN_MASK_ADD);
  if (descriptor < 0) throw_errno("cannot be watched", path, Wanted::kWatch);
  watches_.emplace(++last_, Watch{descriptor, std::move(changed)});
  return last_;
}

int FileWatcher::watch_folder(const std::string& folder,
                              std::function<void(const std::string&)> changed) {
  return add(folder, IN_MOVED_TO | IN_CLOSE_WRITE, std::move(changed));
}

int FileWatcher::watch_file(const std::string& path, std::function<void()> changed) {
  const std::filesystem::path file(path);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  return add(
      folder, IN_MODIFY | IN_CREATE | IN_MOVED_TO,
      [name = file.filename().string(), changed = std::move(changed)](const std::string& written) {
        if (written.empty() || written == name) changed();
      });
}

void FileWatcher::unwatch(int watch) {
  const auto found = watches_.find(watch);
  if (found == watches_.end()) return;
  const int descriptor = found->second.descriptor;
  watches_.erase(found);
  const bool shared = std::any_of(watches_.begin(), watches_.end(), [&](const auto& other) {
    return other.second.descriptor == descriptor;
  });
  if (!shared) ::inotify_rm_watch(inotify_.get(), descriptor);
}

void FileWatcher::wait() {
  inotify_.wait(LoopDescriptor::Event::kReadable, [this](std::error_code error) {
    if (error) return;
    read();
    wait();
  });
}

void FileWatcher::read() {
  alignas(inotify_event) char buffer[16384];
  const ssize_t size = ::read(inotify_.get(), buffer, sizeof buffer);
  for (ssize_t at = 0; at < size;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
    const std::string name = event->len > 0 ? event->name : "";
    const bool missed = (event->mask & IN_Q_OVERFLOW) != 0;
    // Callbacks may add and remove watches.
    std::vector<int> concerned;
    for (const auto& [id, watch] : watches_) {
      if (missed || watch.descriptor == event->wd) concerned.push_back(id);
    }
    for (const int id : concerned) {
      const auto found = watches_.find(id);
      if (found == watches_.end()) continue;
      const auto changed = found->second.changed;
      changed(name);
    }
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
}

}  // namespace fleet
