#include "daemon/node_jobs.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "rendezvous/types.h"

namespace fleet {
namespace {

// verdict.json of this run; "" where it did not get so far, or where it is an earlier one's.
std::string verdict_of(const JobRecord& record) {
  try {
    const std::string text = read_file(record.log_dir + "/verdict.json");
    const auto all = nlohmann::json::parse(text, nullptr, false);
    const bool ours = all.is_object() && all.value("job_id", "") == record.job_id &&
                      all.value("time", 0.0) >= record.started - 0.001;
    return ours ? text : std::string();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

NodeJobs::NodeJobs(boost::asio::io_context& loop, JobTable table)
    : loop_(loop),
      table_(std::move(table)),
      records_(make_job_record_folder()),
      files_(loop),
      children_(loop, SIGCHLD) {
  files_.watch_folder(records_, [this](const std::string& file) { on_record(file); });
  wait_for_children();
}

void NodeJobs::prepare(JobRequest request) {
  const double now = unix_seconds();
  for (const std::string& old : table_.forget(now)) runs_.erase(old);
  const JobInfo& job = table_.prepare(request, now);
  // What the job does not get it does not see. Where there is no GPU, nothing is said.
  if (!job.gpus.empty())
    request.environment.emplace_back("CUDA_VISIBLE_DEVICES", join(job.gpus, ","));
  request.environment.emplace_back("FLEET_RUNTIME_DIR", records_);
  const std::string job_id = request.job_id;
  runs_.erase(job_id);
  runs_[job_id].request = std::move(request);
}

void NodeJobs::launch(const std::string& job_id, int rdzv_port) {
  Run& run = runs_.at(job_id);
  LauncherCommand command;
  command.folder = run.request.folder;
  command.environment = std::move(run.request.environment);
  command.arguments = std::move(run.request.arguments);
  if (rdzv_port > 0) command.arguments.push_back("--rdzv_port=" + std::to_string(rdzv_port));
  command.arguments.push_back("--");
  for (const std::string& word : run.request.program) command.arguments.push_back(word);
  try {
    run.process = std::make_unique<LauncherProcess>(
        loop_, command, [this, job_id](bool error, std::string_view text) {
          runs_.at(job_id).console.add(error, text);
          changed(job_id);
        });
  } catch (const Error&) {
    table_.ended(job_id, 1, {}, unix_seconds());
    runs_.erase(job_id);
    throw;
  }
  spdlog::info("job '{}' starts as pid {}: {}", job_id, run.process->pid(),
               join(run.request.program, " "));
  table_.launched(job_id, run.process->pid(), unix_seconds());
}

void NodeJobs::signal(const std::string& job_id, int number) {
  const auto run = runs_.find(job_id);
  if (run == runs_.end() || !run->second.process) return;
  run->second.process->signal(number);
  // A stopped launcher would not hear it.
  run->second.process->signal(SIGCONT);
}

void NodeJobs::stop(const std::string& job_id, int number) {
  const JobInfo* job = table_.find(job_id);
  if (!job || job->phase == JobPhase::kEnded) return;
  if (job->phase == JobPhase::kPrepared) {
    table_.ended(job_id, 0, {}, unix_seconds());
    changed(job_id);
    runs_.erase(job_id);
    return;
  }
  signal(job_id, number);
  table_.stopping(job_id);
  changed(job_id);
}

void NodeJobs::detach(const std::string& job_id) {
  table_.detached(job_id);
  hold_output(job_id, false);
}

std::vector<JobInfo> NodeJobs::all() {
  for (const std::string& old : table_.forget(unix_seconds())) runs_.erase(old);
  return table_.all();
}

const ConsoleLog& NodeJobs::console(const std::string& job_id) const {
  return runs_.at(job_id).console;
}

void NodeJobs::hold_output(const std::string& job_id, bool hold) {
  const auto run = runs_.find(job_id);
  if (run != runs_.end() && run->second.process) run->second.process->pause(hold);
}

int NodeJobs::watch(const std::string& job_id, std::function<void()> changed) {
  watches_[++last_watch_] = {job_id, std::move(changed)};
  return last_watch_;
}

void NodeJobs::changed(const std::string& job_id) {
  std::vector<int> concerned;  // they may come and go meanwhile
  for (const auto& [id, watch] : watches_) {
    if (watch.job_id == job_id) concerned.push_back(id);
  }
  for (const int id : concerned) {
    const auto found = watches_.find(id);
    if (found == watches_.end()) continue;
    const auto call = found->second.changed;
    call();
  }
}

void NodeJobs::on_record(const std::string& file) {
  for (const auto& [job_id, run] : runs_) {
    if (!run.process || !file.ends_with("." + std::to_string(run.process->pid()) + ".json"))
      continue;
    try {
      table_.recorded(job_id, read_job_record(read_file(records_ + "/" + file)));
    } catch (const Error& error) {  // it has ended meanwhile
      spdlog::debug("{}", error.what());
    }
    return changed(std::string(job_id));
  }
}

void NodeJobs::wait_for_children() {
  children_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    wait_for_children();
    reap();
  });
}

void NodeJobs::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    for (auto& [job_id, run] : runs_) {
      if (!run.process || run.process->pid() != pid) continue;
      launcher_ended(std::string(job_id), status);
      break;
    }
  }
}

void NodeJobs::launcher_ended(const std::string& job_id, int status) {
  Run& run = runs_.at(job_id);
  run.process->reaped();
  run.process.reset();
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  const JobInfo* job = table_.find(job_id);
  const std::string verdict = job ? verdict_of(job->record) : std::string();
  table_.ended(job_id, code, verdict, unix_seconds());
  spdlog::info("job '{}' has ended with {}", job_id, code);
  changed(job_id);
  if (when_none_ && !any_running()) when_none_();
}

bool NodeJobs::any_running() const {
  for (const auto& [job_id, run] : runs_) {
    if (run.process) return true;
  }
  return false;
}

void NodeJobs::when_none(std::function<void()> callback) {
  when_none_ = std::move(callback);
  if (!any_running()) when_none_();
}

void NodeJobs::stop_all(int number, std::function<void()> when_none) {
  when_none_ = std::move(when_none);
  for (const JobInfo& job : table_.all()) stop(job.record.job_id, number);
  if (!any_running()) when_none_();
}

}  // namespace fleet
