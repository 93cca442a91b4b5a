// fleetd's side of one conversation: what is asked becomes calls of NodeJobs, what happens to the
// job becomes what is told.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "daemon/node_jobs.h"
#include "daemon/pulse.h"
#include "daemon/talk.h"

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

  void prepare(const daemon_wire::Prepare& wish);
  void attach(const std::string& job_id);
  void query(const std::string& job_id);
  void stop(const daemon_wire::Stop& order);
  void read_log(const daemon_wire::ReadLog& wish);

  const JobInfo& known(const std::string& job_id) const;  // kUsage
  void follow(const std::string& job_id, Part part);
  // Tells what has happened since it last looked.
  void look();
  void tell_progress(const JobInfo& job);
  bool tell_output();  // false: there is more than the client takes now
  bool tell_file();
  void tell_end(const JobInfo& job);
  void listen_for_life();

  NodeJobs& jobs_;
  std::shared_ptr<ServerTalk> talk_;
  std::function<void()> over_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what is queued may come too late
  boost::asio::steady_timer beat_;
  Pulse pulse_;
  Part part_ = Part::kNobody;
  std::string job_id_;
  std::optional<int> watch_, file_watch_;
  uint64_t shown_ = 0;  // of the console
  UniqueFd file_;       // the log that is read
  bool follows_ = true, told_hosting_ = false, told_running_ = false, told_end_ = false;
  bool launched_ = false, detached_ = false;
};

}  // namespace fleet
