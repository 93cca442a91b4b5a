// Writes the output of jobs to this process's standard output and error.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/terminal_text.h"
#include "daemon/job_info.h"
#include "node/console.h"
#include "node/line_splitter.h"
#include "node/log_reader.h"
#include "transport/event_loop.h"

namespace fleet {

// The output of the nodes' launchers. Passes that of a single node through. With several nodes,
// writes whole lines and prefixes those of launchers with their node; ranks' lines have a prefix
// already. Never blocks. Not thread safe.
class ConsoleOutput {
 public:
  // kRunningJob: the program's standard output. kHistory: recorded output goes to standard
  // output, without control sequences on a terminal.
  enum class Kind { kRunningJob, kHistory };
  ConsoleOutput(EventLoop& loop, bool several, Kind kind = Kind::kRunningJob);
  void write(const std::string& node, bool error, std::string_view text);
  void flush();  // writes incomplete lines
  bool full() const { return output_.full() || errors_.full(); }
  bool idle() const { return output_.idle() && errors_.idle(); }
  bool report_loss() { return output_.report_loss(); }  // standard output only
  void on_drained(const std::function<void()>& callback);

 private:
  Console& console(bool error) { return error && kind_ == Kind::kRunningJob ? errors_ : output_; }

  Console output_, errors_;
  bool several_;
  Kind kind_;
  using Source = std::pair<std::string, bool>;
  std::map<Source, LineSplitter> lines_;
  std::map<Source, TerminalFilter> filters_;
};

// Shows the logs of ranks of one job on this node, including separate logs of standard error.
// Copies the output of a single rank unchanged. Shows that of several ranks line by line with the
// rank as prefix. Removes control sequences on a terminal. Not thread safe; blocks while
// standard output has no reader.
class LocalOutput {
 public:
  // Shows the last `most` bytes of each log and everything appended later. `errors_apart`: writes
  // logs of standard error to standard error, as a running job does; otherwise everything goes to
  // standard output.
  explicit LocalOutput(int64_t max_bytes, bool errors_apart = false)
      : max_bytes_(max_bytes), errors_apart_(errors_apart) {}
  void add(const JobRecord::Rank& rank);
  // Copies new output. Returns false if a log does not exist yet.
  bool copy();
  // The job has ended: do not show output that later runs append to the logs.
  void end(const JobRecord& record);
  void finish();  // writes incomplete last lines
  std::vector<std::string> paths() const;

 private:
  struct Source {
    int rank;
    bool server, error;
    std::string path;
    LogReader reader;
    bool cut;  // starts in the middle of a line
    LineSplitter lines;
    std::unique_ptr<TerminalFilter> filter;  // on a terminal
  };
  std::FILE* file_of(const Source& source) const {
    return source.error && errors_apart_ ? stderr : stdout;
  }
  void add(const JobRecord::Rank& rank, bool error);
  void write(Source* source, std::string_view text);
  void write_line(const Source& source, std::string_view line);

  const int64_t max_bytes_;
  const bool errors_apart_;
  bool several_ = false;  // ranks
  std::vector<std::unique_ptr<Source>> sources_;
};

// Shows the existing output, then new output until none of the given fleetrun processes is
// running. Throws kIo if a log cannot be read.
void follow_local(LocalOutput* output, const std::vector<JobInfo>& parts);

// The end of a person's look at a job: the job's, Ctrl-D, or that of the terminal.
enum class AttachEnd { kJobEnded, kDetached, kHungUp };
// Likewise, and forwards this process's signals to those processes (attach_terminal.h).
AttachEnd attach_to_local(LocalOutput* output, const std::vector<JobInfo>& parts);

}  // namespace fleet
