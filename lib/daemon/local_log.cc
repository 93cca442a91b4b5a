#include "daemon/local_log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdio>

#include "base/error.h"
#include "daemon/file_watch.h"
#include "node/log_reader.h"

namespace fleet {
namespace {

bool copy(LogReader* log) {
  const bool there =
      log->read([](std::string_view part) { std::fwrite(part.data(), 1, part.size(), stdout); });
  std::fflush(stdout);
  return there;
}

}  // namespace

int show_local_log(const std::string& path, pid_t launcher) {
  LogReader log(path);
  if (!copy(&log)) throw Error(ErrorCode::kNotFound, "there is no such log", path);
  if (launcher < 0) return 0;
  boost::asio::io_context loop{1};
  FileWatch watch(loop);
  watch.watch_file(path, [&] { copy(&log); });
  boost::asio::posix::stream_descriptor ended(loop);
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, launcher, 0));
  if (process >= 0) {
    ended.assign(process);
    ended.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [&](boost::system::error_code) { loop.stop(); });
    copy(&log);  // what came before it was watched
    loop.run();
  }
  copy(&log);
  return 0;
}

}  // namespace fleet
