#include "daemon/attach_terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/captured_log.h"
#include "tests/test_terminal.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const AttachInterrupts::Time kNow = AttachInterrupts::Time() + 100s;

TEST(AttachInterrupts, SecondOneWithinTheWindow_IsARequest) {
  AttachInterrupts interrupts;
  EXPECT_FALSE(interrupts.is_request(true, kNow));
  EXPECT_TRUE(interrupts.is_request(true, kNow + 5s));
  EXPECT_TRUE(interrupts.is_request(true, kNow + 1h));  // the job is being stopped
}

TEST(AttachInterrupts, LaterOne_IsAskedForAgain) {
  AttachInterrupts interrupts;
  EXPECT_FALSE(interrupts.is_request(true, kNow));
  EXPECT_FALSE(interrupts.is_request(true, kNow + 6s));
  EXPECT_TRUE(interrupts.is_request(true, kNow + 7s));
}

TEST(AttachInterrupts, Program_IsObeyedAtOnce) {
  AttachInterrupts interrupts;
  EXPECT_TRUE(interrupts.is_request(false, kNow));
  EXPECT_TRUE(interrupts.is_request(true, kNow + 1s));
}

// As the kernel sends it for a key, or as a program does.
void interrupt_this_process(int code) {
  siginfo_t info = {};
  info.si_signo = SIGINT;
  info.si_code = code;
  ASSERT_EQ(::syscall(SYS_rt_sigqueueinfo, ::getpid(), SIGINT, &info), 0);
}

struct AttachTerminalTest : ::testing::Test {
  // The bound is against hanging.
  void run_until(const std::function<bool()>& reached) {
    const auto end = std::chrono::steady_clock::now() + 1min;
    while (!reached() && std::chrono::steady_clock::now() < end) loop.run_one_for(100ms);
    ASSERT_TRUE(reached());
  }
  AttachTerminal::Handlers handlers() {
    return {[this] { did.emplace_back("detach"); }, [this] { did.emplace_back("interrupt"); }};
  }

  TestTerminal person;
  const UniqueFd input{::open(person.path().c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC)};
  EventLoop loop;
  std::vector<std::string> did;
};

TEST_F(AttachTerminalTest, ControlC_SaysWhatTheNextOneDoes) {
  const LogCapture log;
  AttachTerminal terminal(loop, handlers(), input.get());
  interrupt_this_process(SI_KERNEL);
  run_until([&] { return !log.captured_log().empty(); });
  EXPECT_THAT(log.captured_log(), HasSubstr("Ctrl-D"));
  EXPECT_THAT(did, IsEmpty());
  interrupt_this_process(SI_KERNEL);
  run_until([&] { return !did.empty(); });
  EXPECT_THAT(did, ElementsAre("interrupt"));
}

TEST_F(AttachTerminalTest, SigintOfAProgram_IsPassedOnAtOnce) {
  AttachTerminal terminal(loop, handlers(), input.get());
  ::kill(::getpid(), SIGINT);
  run_until([&] { return !did.empty(); });
  EXPECT_THAT(did, ElementsAre("interrupt"));
}

TEST_F(AttachTerminalTest, ControlD_Detaches) {
  AttachTerminal terminal(loop, handlers(), input.get());
  EXPECT_TRUE(terminal.has_keys());
  person.type("ls\n\x04");
  run_until([&] { return !did.empty(); });
  EXPECT_THAT(did, ElementsAre("detach"));
}

// A shell that starts a background process without job control ignores SIGINT for it.
TEST_F(AttachTerminalTest, IgnoredSigint_StaysIgnored) {
  const auto before = ::signal(SIGINT, SIG_IGN);
  {
    AttachTerminal terminal(loop, handlers(), -1);
    EXPECT_FALSE(terminal.has_keys());
    struct sigaction action = {};
    ::sigaction(SIGINT, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_IGN);
  }
  ::signal(SIGINT, before);
}

}  // namespace
}  // namespace fleet
