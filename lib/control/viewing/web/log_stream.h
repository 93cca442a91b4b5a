// A rank's log as Server-Sent Events.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/terminal_text.h"
#include "daemon/job_info.h"
#include "launch/starting/http_server.h"
#include "node/line_splitter.h"
#include "transport/event_loop.h"

namespace fleet {

// So much of the past is sent at first.
inline constexpr int64_t kPastLogBytes = 64 << 10;

// Whole lines of a log as an event "lines" with {"text", "error"}. Not thread-safe.
class LogLines {
 public:
  // `cut`: the log begins in the middle of a line, which is left out. `error`: it is standard
  // error.
  LogLines(bool cut, bool error) : cut_(cut), error_(error) {}
  // The event; "" if no line has ended. Without colours, and without text that a terminal would
  // have overwritten.
  std::string add(std::string_view bytes);
  void skip_to_next_line() { cut_ = true; }

 private:
  bool cut_;
  const bool error_;
  TerminalFilter filter_{false};
  LineSplitter lines_;
};

// Sends the end of the log of a rank of this host, of its standard error too, and what is added,
// until the stream is closed.
void stream_local_log(EventLoop& loop, const JobRecord::Rank& rank,
                      std::shared_ptr<HttpStream> stream);

}  // namespace fleet
