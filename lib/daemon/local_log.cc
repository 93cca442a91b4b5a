#include "daemon/local_log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdio>

#include "base/file.h"
#include "daemon/file_watch.h"

namespace fleet {
namespace {

void copy(int file) {
  char buffer[65536];
  for (ssize_t size; (size = ::read(file, buffer, sizeof buffer)) > 0;) {
    std::fwrite(buffer, 1, static_cast<size_t>(size), stdout);
  }
  std::fflush(stdout);
}

}  // namespace

int show_local_log(const std::string& path, pid_t launcher) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw_errno("the log cannot be read", path);
  copy(file.get());
  if (launcher < 0) return 0;
  boost::asio::io_context loop{1};
  FileWatch watch(loop);
  watch.watch_file(path, [&] { copy(file.get()); });
  boost::asio::posix::stream_descriptor ended(loop);
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, launcher, 0));
  if (process >= 0) {
    ended.assign(process);
    ended.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [&](boost::system::error_code) { loop.stop(); });
    copy(file.get());  // what came before it was watched
    loop.run();
  }
  copy(file.get());
  return 0;
}

}  // namespace fleet
