// The jobs that a fleetd runs: the rules of JobTable applied to real launchers. Client sessions use
// it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/file_watcher.h"
#include "daemon/job_store.h"
#include "daemon/job_table.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// The fleetrun of a job on this node. Runs in its own session without standard input, and dies with
// this process. Output arrives in pieces as it is written; nothing is read while paused. Not thread
// safe.
class LauncherProcess {
 public:
  using OnOutput = std::function<void(bool error, std::string_view text)>;

  // rdzv_port: as in a LaunchJob. Throws kUsage if the folder does not exist, kIo if the process
  // cannot start. Call it from the main thread: the launcher dies with the thread that started it.
  LauncherProcess(EventLoop& loop, const wire::JobRequest& request, int rdzv_port,
                  OnOutput on_output);
  pid_t pid() const { return pid_; }
  void signal(int number);  // ignored once it has ended
  void pause(bool paused);
  // Call after waitpid(): reads the rest of its pipes.
  void on_reaped();

 private:
  struct Pipe {
    Pipe(EventLoop& loop, bool is_error) : end(loop), error(is_error) {}
    LoopDescriptor end;
    bool error;
    bool waits = false, closed = false;
  };
  void wait(Pipe* pipe);
  bool read(Pipe* pipe);  // false: empty or closed

  OnOutput on_output_;
  Pipe output_, errors_;
  pid_t pid_ = -1;
  bool paused_ = false, reaped_ = false;
};

// Call at the start of every fleetrun: if a fleetd started it, it dies with that fleetd.
void die_with_fleetd();

// Jobs are identified by their number in the table. Not thread safe: everything runs on the loop's
// thread.
class NodeJobs {
 public:
  // Starts with the jobs recorded in `memory`.
  NodeJobs(EventLoop& loop, JobTable table, JobStore store = {});

  // Like JobTable::prepare(); returns the number. Throws its errors.
  int prepare(JobRequest request);
  // Starts the launcher. On failure, throws and forgets the job.
  void launch(int number, int rdzv_port);
  void signal(int number, int signal);
  // Stops the job: a reservation at once, a launcher by a message.
  void stop(int number, const wire::StopRequest& how);
  void detach(int number);

  const JobInfo* find(int number) const { return table_.find(number); }
  const JobInfo* find_by_job_id(const std::string& job_id) const {
    return table_.find_by_job_id(job_id);
  }
  const std::vector<JobInfo>& all();
  const ConsoleLog& console(int number) const;
  // Pauses reading the job's output while its client is too far behind.
  void pause_output(int number, bool pause);
  FileWatcher& files() { return files_; }

  // Calls `changed` whenever the job's state or output changes, until forget().
  int watch(int number, std::function<void()> changed);
  void unwatch(int watch) { watches_.erase(watch); }

  // Calls `callback` when no job runs.
  void when_idle(std::function<void()> callback);
  // Accepts no more jobs, stops all, and calls `when_idle` when none is left.
  void stop_all(const wire::StopRequest& how, std::function<void()> when_idle);

 private:
  void stop(LauncherProcess* launcher, const wire::StopRequest& how);

  struct Run {
    JobRequest request;
    std::unique_ptr<LauncherProcess> process;  // nullptr if not launched, or ended
    ConsoleLog console;
  };
  struct Watch {
    int number;
    std::function<void()> changed;
  };

  void restore_jobs();
  void reap();
  void read_last_record(int number, pid_t launcher);
  void launcher_ended(int number, int status);
  void on_record(const std::string& file);
  void notify_watchers(int number);
  void expire_old_jobs();
  void save_job(int number);
  bool any_running() const;

  EventLoop& loop_;
  JobTable table_;
  JobStore store_;
  std::string records_;  // folder of the job records
  FileWatcher files_;
  LoopSignals children_;
  std::map<int, Run> runs_;  // by the job's number
  std::map<int, Watch> watches_;
  int last_watch_ = 0;
  bool stopping_ = false;
  std::function<void()> when_idle_;
};

}  // namespace fleet
