#include "daemon/node_jobs.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/planning/refuse.h"
#include "node/control_socket.h"
#include "node/runtime_folder.h"

namespace fleet {
namespace {

// Texts from clients must not be able to imitate our log lines.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return text;
}

bool differ_in_progress_only(JobRecord one, JobRecord other) {
  one.clear_progress();
  other.clear_progress();
  return one.SerializeAsString() == other.SerializeAsString();
}

}  // namespace

NodeJobs::NodeJobs(EventLoop& loop, JobTable table, JobStore store)
    : loop_(loop),
      table_(std::move(table)),
      store_(std::move(store)),
      records_(make_runtime_folder()),
      files_(loop),
      children_(loop, {SIGCHLD}) {
  files_.watch_folder(records_, [this](const std::string& file) { on_record(file); });
  restore_jobs();
  children_.on_signal([this](int) { reap(); });
}

void NodeJobs::restore_jobs() {
  const double now = unix_seconds();
  for (JobStore::StoredJob& stored : store_.load()) {
    JobInfo& job = stored.job;
    // The job was killed together with its fleetd.
    const bool interrupted = job.phase() != JobInfo::ENDED;
    if (interrupted) {
      job.set_phase(JobInfo::ENDED);
      job.set_code(128 + SIGKILL);
      job.set_ended(now);
    }
    const std::string job_id = job.record().job_id();
    table_.restore(std::move(job));
    if (const JobInfo* known = table_.find_by_job_id(job_id)) {
      runs_[known->number()].console = std::move(stored.console);
      if (interrupted) save_job(known->number());
    }
  }
  expire_old_jobs();
  find_jobs();  // removes the records of killed jobs
}

void NodeJobs::save_job(int number) {
  const JobInfo* job = table_.find(number);
  if (job) store_.save(*job, runs_.at(number).console);
}

void NodeJobs::expire_old_jobs() {
  for (const JobInfo& old : table_.expire(unix_seconds())) {
    runs_.erase(old.number());
    store_.remove(old.record().job_id());
    notify_watchers(old.number());
  }
}

int NodeJobs::prepare(JobRequest request) {
  if (stopping_) {
    refuse("this fleetd is stopping and accepts no more jobs", {}, "restart it");
  }
  expire_old_jobs();
  const JobInfo* old = table_.find_by_job_id(request.job_id());
  const int replaced = old ? old->number() : 0;
  const JobInfo& job = table_.prepare(request, unix_seconds());
  auto* environment = request.mutable_environment();
  // Hide all other GPUs from the job. On a node without GPUs, leave the variable unset.
  if (!job.gpus().empty())
    add_value("CUDA_VISIBLE_DEVICES", join(texts(job.gpus()), ","), environment);
  add_value("FLEET_RUNTIME_DIR", records_, environment);
  const int number = job.number();
  runs_[number].request = std::move(request);
  if (runs_.erase(replaced) > 0) notify_watchers(replaced);
  return number;
}

void NodeJobs::launch(int number, int rdzv_port) {
  const JobInfo* job = table_.find(number);
  if (!job || job->phase() != JobInfo::PREPARED) {
    throw Error(ErrorCode::kNotFound, "the job was stopped before it started");
  }
  Run& run = runs_.at(number);
  const std::string job_id = job->record().job_id();
  try {
    run.process = std::make_unique<LauncherProcess>(
        loop_, run.request, rdzv_port, [this, number](bool error, std::string_view text) {
          runs_.at(number).console.add(error, text);
          notify_watchers(number);
        });
  } catch (const Error&) {
    table_.on_ended(number, 1, unix_seconds());
    runs_.erase(number);
    throw;
  }
  spdlog::info("job '{}' starts as pid {}: {}", printable(job_id), run.process->pid(),
               printable(join(texts(run.request.program()), " ")));
  run.request.Clear();  // it may contain secrets
  table_.on_launched(number, run.process->pid(), unix_seconds());
  save_job(number);
}

void NodeJobs::signal(int number, int signal) {
  const auto run = runs_.find(number);
  if (run == runs_.end() || !run->second.process) return;
  run->second.process->signal(signal);
  // Resume a suspended launcher so that it can handle the signal.
  run->second.process->signal(SIGCONT);
}

// A fleetd whose descriptors have run out still stops its jobs.
void NodeJobs::stop(LauncherProcess* launcher, const wire::StopRequest& how) {
  try {
    stop_launcher(ProcessHandle(launcher->pid()), how);
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
    launcher->signal(how.kill() ? SIGKILL : how.signal());
    launcher->signal(SIGCONT);
  }
}

void NodeJobs::stop(int number, const wire::StopRequest& how) {
  const JobInfo* job = table_.find(number);
  if (!job || job->phase() == JobInfo::ENDED) return;
  if (job->phase() == JobInfo::PREPARED) {
    table_.on_ended(number, 0, unix_seconds());
    runs_.erase(number);
    return notify_watchers(number);
  }
  const auto run = runs_.find(number);
  if (run != runs_.end() && run->second.process) stop(run->second.process.get(), how);
  table_.on_stopping(number);
  notify_watchers(number);
}

void NodeJobs::detach(int number) {
  table_.on_detached(number);
  pause_output(number, false);
  save_job(number);
}

const std::vector<JobInfo>& NodeJobs::all() {
  expire_old_jobs();
  return table_.all();
}

const ConsoleLog& NodeJobs::console(int number) const { return runs_.at(number).console; }

void NodeJobs::pause_output(int number, bool pause) {
  const auto run = runs_.find(number);
  if (run != runs_.end() && run->second.process) run->second.process->pause(pause);
}

int NodeJobs::watch(int number, std::function<void()> changed) {
  watches_[++last_watch_] = {number, std::move(changed)};
  return last_watch_;
}

void NodeJobs::notify_watchers(int number) {
  std::vector<int> concerned;  // callbacks may add and remove watches
  for (const auto& [id, watch] : watches_) {
    if (watch.number == number) concerned.push_back(id);
  }
  for (const int id : concerned) {
    const auto found = watches_.find(id);
    if (found == watches_.end()) continue;
    const auto call = found->second.changed;
    call();
  }
}

// `file` is "" if any record may be new.
void NodeJobs::on_record(const std::string& file) {
  const std::vector<JobRecord> missed = file.empty() ? find_jobs() : std::vector<JobRecord>();
  std::vector<std::pair<int, JobRecord>> found;
  for (const auto& [number, run] : runs_) {
    if (!run.process) continue;
    const pid_t pid = run.process->pid();
    for (const JobRecord& record : missed) {
      if (record.pid() == pid) found.emplace_back(number, record);
    }
    if (!file.ends_with("." + std::to_string(pid) + ".job")) continue;
    try {
      found.emplace_back(number, read_job_record(records_ + "/" + file));
    } catch (const Error& error) {  // the job has ended in the meantime
      spdlog::debug("{}", error.what());
    }
  }
  for (const auto& [number, record] : found) {
    const JobInfo* known = table_.find(number);
    const bool only_progress = known && differ_in_progress_only(known->record(), record);
    table_.on_record(number, record);
    if (only_progress) continue;  // every few seconds: not worth a write to the disk
    save_job(number);
    notify_watchers(number);
  }
}

void NodeJobs::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    for (const auto& [number, run] : runs_) {
      if (!run.process || run.process->pid() != pid) continue;
      launcher_ended(number, status);
      break;
    }
  }
}

// A short job may have written its record since the last read.
void NodeJobs::read_last_record(int number, pid_t launcher) {
  const std::string path =
      records_ + "/" + job_record_name(table_.find(number)->record().job_id(), launcher);
  try {
    table_.on_record(number, read_job_record(path));
  } catch (const Error& error) {  // it ended before writing a record
    spdlog::debug("{}", error.what());
  }
  ::unlink(path.c_str());
}

void NodeJobs::launcher_ended(int number, int status) {
  Run& run = runs_.at(number);
  run.process->on_reaped();
  read_last_record(number, run.process->pid());
  run.process.reset();
  const int code = exit_code_of(status);
  const JobInfo* job = table_.find(number);
  spdlog::info("job '{}' has ended with {}", printable(job->record().job_id()), code);
  table_.on_ended(number, code, unix_seconds());
  save_job(number);
  notify_watchers(number);
  if (when_idle_ && !any_running()) when_idle_();
}

bool NodeJobs::any_running() const {
  for (const auto& [number, run] : runs_) {
    if (run.process) return true;
  }
  return false;
}

void NodeJobs::when_idle(std::function<void()> callback) {
  when_idle_ = std::move(callback);
  if (!any_running()) when_idle_();
}

void NodeJobs::stop_all(const wire::StopRequest& how, std::function<void()> callback) {
  stopping_ = true;
  std::vector<int> numbers;
  for (const JobInfo& job : table_.all()) numbers.push_back(job.number());
  for (const int number : numbers) stop(number, how);
  when_idle(std::move(callback));
}

}  // namespace fleet
