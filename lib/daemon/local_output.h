// The logs of this node's ranks, on standard output.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/terminal_text.h"
#include "daemon/job_info.h"
#include "node/line_splitter.h"
#include "node/log_reader.h"

namespace fleet {

// What ranks of one job have written, standard error apart if it has a file of its own. The output
// of a single rank is copied as it is; that of several is shown line by line, with the rank before
// each. On a terminal nothing in it commands that. Not thread safe; blocks while nobody reads
// standard output.
class LocalOutput {
 public:
  // The last `most` bytes of each log and what comes behind them. `errors_apart`: logs of standard
  // error go to standard error, as when the job runs here; else what was asked for is one output.
  explicit LocalOutput(int64_t most, bool errors_apart = false)
      : most_(most), errors_apart_(errors_apart) {}
  void add(const JobRecord::Rank& rank);
  // Copies what has come since. False if a log is not there (yet).
  bool copy();
  // The job has ended: what other runs append to the logs is not shown.
  void end(const JobRecord& record);
  void finish();  // lines without an end
  std::vector<std::string> paths() const;

 private:
  struct Source {
    int rank;
    bool server, error;
    std::string path;
    LogReader reader;
    bool cut;  // it begins within a line
    LineSplitter lines;
    std::unique_ptr<TerminalFilter> filter;  // on a terminal
  };
  std::FILE* file_of(const Source& source) const {
    return source.error && errors_apart_ ? stderr : stdout;
  }
  void add(const JobRecord::Rank& rank, bool error);
  void write(Source* source, std::string_view text);
  void write_line(const Source& source, std::string_view line);

  const int64_t most_;
  const bool errors_apart_;
  bool several_ = false;  // ranks
  std::vector<std::unique_ptr<Source>> sources_;
};

// Shows what is there and, to follow, what comes until none of these fleetruns (whose records are
// given) runs any more. With pass_signals they get this process's signals. kIo if a log cannot be
// read.
void follow_local(LocalOutput* output, const std::vector<JobInfo>& parts, bool pass_signals);

}  // namespace fleet
