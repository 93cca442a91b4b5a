#include "daemon/attach_terminal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/standard_error.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kRetry{500};  // in the background
constexpr char kControlD = 4;

std::atomic<int> interrupt_pipe = -1;

// A terminal sends its signals as the kernel; kill(2) and its like give a process.
void note_interrupt(int, siginfo_t* info, void*) {
  const int error = errno;
  const char typed = info->si_code == SI_KERNEL ? 1 : 0;
  [[maybe_unused]] const ssize_t size = ::write(interrupt_pipe, &typed, 1);
  errno = error;
}

// An open file of its own: the flags of the one behind `input` are shared with the shell.
UniqueFd open_terminal(int input) {
  if (::isatty(input) != 1) return {};
  const std::string path = "/proc/self/fd/" + std::to_string(input);
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

int attach_input() {
  struct stat output;
  const bool piped = ::fstat(STDOUT_FILENO, &output) == 0 && S_ISFIFO(output.st_mode);
  return piped ? -1 : STDIN_FILENO;
}

bool AttachInterrupts::is_request(bool typed, Time now) {
  const bool repeated = warned_ && now - *warned_ <= kWindow;
  if (typed && !requested_ && !repeated) {
    warned_ = now;
    return false;
  }
  return requested_ = true;
}

AttachTerminal::AttachTerminal(EventLoop& loop, Handlers handlers, int input)
    : handlers_(std::move(handlers)), caught_(loop), keys_(loop), retry_(loop) {
  // A read in the background then fails instead of stopping the process.
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGTTIN, &ignore, &background_read_);
  ::sigaction(SIGINT, nullptr, &interrupt_);
  if (interrupt_.sa_handler != SIG_IGN) catch_interrupts();
  if (UniqueFd terminal = open_terminal(input)) {
    keys_.assign(std::move(terminal));
    read_keys();
  }
}

AttachTerminal::~AttachTerminal() {
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGTTIN, &background_read_, nullptr);
  interrupt_pipe = -1;
}

void AttachTerminal::catch_interrupts() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw_errno("cannot create a pipe");
  caught_in_ = UniqueFd(ends[1]);
  caught_.assign(UniqueFd(ends[0]));
  interrupt_pipe = caught_in_.get();
  struct sigaction action = {};
  action.sa_sigaction = note_interrupt;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  read_interrupts();
}

void AttachTerminal::read_interrupts() {
  caught_.wait(LoopDescriptor::Event::kReadable, [this](std::error_code error) {
    if (error) return;
    char typed = 0;
    while (::read(caught_.get(), &typed, 1) == 1) on_interrupt(typed != 0);
    read_interrupts();
  });
}

void AttachTerminal::on_interrupt(bool typed) {
  if (interrupts_.is_request(typed, std::chrono::steady_clock::now())) {
    return handlers_.interrupt();
  }
  spdlog::warn("Ctrl-C again within {} s stops the job{}", AttachInterrupts::kWindow.count(),
               has_keys() ? "; Ctrl-D detaches and leaves it running" : "");
}

void AttachTerminal::read_keys() {
  keys_.wait(LoopDescriptor::Event::kReadable, [this](std::error_code error) {
    if (error) return;
    char typed[256];
    for (;;) {
      const ssize_t size = ::read(keys_.get(), typed, sizeof typed);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return read_keys();
      if (size < 0) break;  // the shell has the terminal
      const std::string_view keys(typed, static_cast<size_t>(size));
      if (keys.find(kControlD) != keys.npos || (size == 0 && is_end_of_input())) {
        return handlers_.detach();
      }
      if (size == 0) break;
    }
    retry_.after(kRetry, [this] { read_keys(); });
  });
}

// In other modes, a read of nothing means that no key was pressed.
bool AttachTerminal::is_end_of_input() const {
  termios mode = {};
  return ::tcgetattr(keys_.get(), &mode) != 0 || (mode.c_lflag & ICANON) != 0;
}

void AttachTerminal::print_keys(const std::string& job_id) const {
  if (!has_keys()) return;
  write_standard_error("Ctrl-D detaches from job " + shown_name(job_id) +
                       ", Ctrl-C twice stops it\n");
}

void print_detached(const std::string& job_id) {
  write_standard_error("detached from job " + shown_name(job_id) + ", which continues: fleetrun " +
                       "attach " + escape_controls(shell_word(job_id)) + " shows it again\n");
}

}  // namespace fleet
