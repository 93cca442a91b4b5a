// The jobs that a fleetd runs: JobTable's rules over real launchers. Conversations look at it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/console_log.h"
#include "daemon/file_watch.h"
#include "daemon/job_table.h"
#include "daemon/launcher_process.h"

namespace fleet {

// Not thread safe: everything happens in the loop's thread.
class NodeJobs {
 public:
  NodeJobs(boost::asio::io_context& loop, JobTable table);

  // As in JobTable. Throws what it refuses.
  void prepare(JobRequest request);
  // Starts its launcher. Throws where that is not possible; the job is then forgotten.
  void launch(const std::string& job_id, int rdzv_port);
  void signal(const std::string& job_id, int number);
  // Ends it: a reservation at once, a launcher by `number`.
  void stop(const std::string& job_id, int number);
  void detach(const std::string& job_id);

  const JobInfo* find(const std::string& job_id) const { return table_.find(job_id); }
  std::vector<JobInfo> all();
  const ConsoleLog& console(const std::string& job_id) const;
  // Its output is not read as long as somebody is so far behind.
  void hold_output(const std::string& job_id, bool hold);
  FileWatch& files() { return files_; }

  // Calls `changed` whenever something about this job has changed, until forget().
  int watch(const std::string& job_id, std::function<void()> changed);
  void forget(int watch) { watches_.erase(watch); }

  // Calls back when no job runs.
  void when_none(std::function<void()> callback);
  // Ends every job by `number`, and calls back when none is left.
  void stop_all(int number, std::function<void()> when_none);

 private:
  struct Run {
    JobRequest request;
    std::unique_ptr<LauncherProcess> process;  // nullptr: not launched, or over
    ConsoleLog console{512 << 10};
  };
  struct Watch {
    std::string job_id;
    std::function<void()> changed;
  };

  void wait_for_children();
  void reap();
  void launcher_ended(const std::string& job_id, int status);
  void on_record(const std::string& file);
  void changed(const std::string& job_id);
  bool any_running() const;

  boost::asio::io_context& loop_;
  JobTable table_;
  std::string records_;  // the folder
  FileWatch files_;
  boost::asio::signal_set children_;
  std::map<std::string, Run> runs_;
  std::map<int, Watch> watches_;
  int last_watch_ = 0;
  std::function<void()> when_none_;
};

}  // namespace fleet
