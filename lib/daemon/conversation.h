// fleetd's side of one conversation: what is asked becomes calls of NodeJobs, what happens to the
// job becomes what is told.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/node_jobs.h"
#include "daemon/pulse.h"
#include "daemon/talk.h"
#include "node/log_reader.h"

namespace fleet {

class Conversation {
 public:
  // `over` is called once, last.
  Conversation(boost::asio::io_context& loop, NodeJobs& jobs, std::shared_ptr<ServerTalk> talk,
               std::function<void()> over);
  ~Conversation();
  Conversation(const Conversation&) = delete;

 private:
  // What the client is to the job.
  enum class Part { kNobody, kOwner, kAttached, kStopper, kReader };

  void on_ask(const Ask& ask);
  void answer(const Ask& ask);  // throws Error, which is told as a refusal
  void on_closed();
  void hang_up(const JobInfo& job);

  void prepare(const daemon_wire::Prepare& wish);
  void attach(const std::string& job_id);
  void query(const std::string& job_id);
  void stop(const daemon_wire::Stop& order);
  void read_log(const daemon_wire::ReadLog& wish);

  const JobInfo& known(const std::string& job_id) const;  // kNotFound
  void follow(int number, Part part);
  // Tells what has happened since it last looked.
  void look();
  void tell_progress(const JobInfo& job);
  // False: there is more than the client takes now.
  bool tell_output();
  bool tell_log(const JobInfo& job);
  bool tell_open_log();
  bool open_log(const JobInfo& job);  // where there is another one now
  void tell_end(const JobInfo& job);
  void listen_for_life();

  NodeJobs& jobs_;
  std::shared_ptr<ServerTalk> talk_;
  std::function<void()> over_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what is queued may come too late
  boost::asio::steady_timer beat_;
  Pulse pulse_;
  Part part_ = Part::kNobody;
  int number_ = 0;                // of the job
  std::optional<JobInfo> ended_;  // as it was in the end: its name may be another's soon
  std::optional<int> watch_, log_watch_;
  uint64_t shown_ = 0;  // of the console
  // The log that is read: a rank's, which may be elsewhere after a restart.
  std::optional<daemon_wire::ReadLog> rank_;
  std::optional<LogReader> log_;
  std::string log_path_;
  int asks_ = 0;  // since the last beat
  int told_epoch_ = 0;
  bool follows_ = true, told_hosting_ = false, told_end_ = false;
  bool launched_ = false, detached_ = false;
};

}  // namespace fleet
