#include "base/limits.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/file.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

TEST(LimitBehind, Error_NamesTheLimitOfWhatWasWanted) {
  EXPECT_THAT(limit_behind(EMFILE), HasSubstr("ulimit -n"));
  EXPECT_THAT(limit_behind(ENFILE), HasSubstr("fs.file-max"));
  EXPECT_THAT(limit_behind(EAGAIN, Wanted::kProcess), HasSubstr("pids.max"));
  EXPECT_THAT(limit_behind(ENOSPC, Wanted::kWatch), HasSubstr("max_user_watches"));
  EXPECT_THAT(limit_behind(EMFILE, Wanted::kWatch), HasSubstr("max_user_instances"));
  EXPECT_THAT(limit_behind(EADDRINUSE, Wanted::kPort), HasSubstr("ip_local_port_range"));
}

TEST(LimitBehind, ErrorWithoutALimit_IsEmpty) {
  EXPECT_EQ(limit_behind(EAGAIN), "");
  EXPECT_EQ(limit_behind(ENOSPC), "");
  EXPECT_EQ(limit_behind(ENOENT, Wanted::kProcess), "");
}

// A file that is too large for the file system has the same errno.
TEST(LimitBehind, FileTooLarge_NamesTheLimitOnlyIfThereIsOne) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 20, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string limited = limit_behind(EFBIG);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(limited, HasSubstr("1024 KiB"));
  if (usual.rlim_cur == RLIM_INFINITY) {
    EXPECT_EQ(limit_behind(EFBIG), "");
  }
}

TEST(ThrowErrno, Limit_IsTheAdvice) {
  EXPECT_THAT(thrown_by([] {
                errno = EMFILE;
                throw_errno("cannot be opened", "a file");
              }),
              Advises(HasSubstr("ulimit -n")));
}

TEST(TextWithLimit, ExceptionOfALibrary_NamesTheLimit) {
  const std::system_error files(EMFILE, std::generic_category());
  EXPECT_THAT(text_with_limit(files), HasSubstr("ulimit -n"));
  EXPECT_THAT(text_with_limit(std::bad_alloc()), HasSubstr("memory"));
  EXPECT_EQ(text_with_limit(std::runtime_error("text")), "text");
}

}  // namespace
}  // namespace fleet
