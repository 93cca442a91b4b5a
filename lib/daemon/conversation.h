// fleetd's side of one client session: turns requests into calls of NodeJobs, and changes of the
// job into events.
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
  // Calls `over` once, at the very end.
  Conversation(boost::asio::io_context& loop, NodeJobs& jobs, std::shared_ptr<ServerTalk> talk,
               std::function<void()> over);
  ~Conversation();
  Conversation(const Conversation&) = delete;

 private:
  // The client's relation to the job.
  enum class Part { kNobody, kOwner, kAttached, kStopper, kReader };

  void on_ask(const Ask& ask);
  void answer(const Ask& ask);  // throws Error, which becomes a refusal
  void on_closed();
  void hang_up(const JobInfo& job);

  void prepare(const daemon_wire::Prepare& wish);
  void attach(const std::string& job_id);
  void query(const std::string& job_id);
  void stop(const daemon_wire::Stop& order);
  void read_log(const daemon_wire::ReadLog& wish);

  const JobInfo& known(const std::string& job_id) const;  // kNotFound
  void follow(int number, Part part);
  // Sends the changes since the last call.
  void look();
  void tell_progress(const JobInfo& job);
  // Returns false if the client cannot take all output now.
  bool tell_output();
  bool tell_log(const JobInfo& job);
  bool tell_open_log();
  bool open_log(const JobInfo& job);  // reopens if the rank has a new log
  void tell_end(const JobInfo& job);
  void listen_for_life();

  NodeJobs& jobs_;
  std::shared_ptr<ServerTalk> talk_;
  std::function<void()> over_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // guards callbacks that may run after destruction
  boost::asio::steady_timer beat_;
  Pulse pulse_;
  Part part_ = Part::kNobody;
  int number_ = 0;                // number of the job
  std::optional<JobInfo> ended_;  // final state: another job may soon reuse the name
  std::optional<int> watch_, log_watch_;
  uint64_t shown_ = 0;  // position in the console log
  // The rank whose log is read; its file may change after a restart.
  std::optional<daemon_wire::ReadLog> rank_;
  std::optional<LogReader> log_;
  std::string log_path_;
  int asks_ = 0;  // since the last heartbeat
  int told_epoch_ = 0;
  bool follows_ = true, told_hosting_ = false, told_end_ = false;
  bool launched_ = false, detached_ = false;
};

}  // namespace fleet
