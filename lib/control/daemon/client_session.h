// fleetd's side of one client session: turns requests into calls of NodeJobs, and changes of the
// job into events.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/message_stream.h"
#include "daemon/node_jobs.h"
#include "node/log_reader.h"
#include "transport/event_loop.h"
#include "transport/failure_detector.h"

namespace fleet {

class ClientSession {
 public:
  // Calls `on_end` once, at the very end.
  ClientSession(EventLoop& loop, NodeJobs& jobs, std::shared_ptr<ServerStream> stream,
                std::function<void()> on_end);
  ~ClientSession();
  ClientSession(const ClientSession&) = delete;

 private:
  // The client's relation to the job.
  enum class Role { kNone, kOwner, kAttached, kStopper, kReader, kObserver };

  void on_message(const wire::ClientMessage& message);
  void handle(const wire::ClientMessage& message);  // throws Error, which becomes a refusal
  void on_closed();
  void on_owner_lost(const JobInfo& job);

  void prepare(const wire::JobRequest& request);
  void attach(const std::string& job_id);
  void query(const std::string& job_id);
  void stop_named(const wire::StopNamedJob& request);
  void read_log(const wire::ReadLog& request);
  void query_live(const wire::QueryLive& query);
  void signal(int number);
  void detach();
  void refuse(const Error& error);

  const JobInfo& job_named(const std::string& job_id) const;  // kNotFound
  void subscribe(int number, Role role);
  // Sends the changes since the last call.
  void send_updates();
  void send_progress(const JobInfo& job);
  // Returns false if the client cannot take all output now.
  bool send_output();
  bool send_log(const JobInfo& job);
  bool send_open_log();
  bool open_log(const JobInfo& job);  // reopens if the rank has a new log
  void send_end(const JobInfo& job);
  void start_heartbeat_timer();

  EventLoop& loop_;
  NodeJobs& jobs_;
  std::shared_ptr<ServerStream> stream_;
  std::function<void()> on_end_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // guards callbacks that may run after destruction
  LoopTimer heartbeat_timer_;
  FailureDetector failure_detector_;
  Role role_ = Role::kNone;
  int number_ = 0;                // number of the job
  std::optional<JobInfo> ended_;  // final state: another job may soon reuse the name
  std::optional<int> watch_, log_watch_;
  uint64_t console_position_ = 0;  // position in the console log
  // The rank whose log is read; its file may change after a restart.
  std::optional<wire::ReadLog> log_request_;
  std::optional<LogReader> log_;
  std::string log_path_;
  int request_count_ = 0;  // since the last heartbeat
  int announced_generation_ = 0;
  bool follow_ = true, announced_hosting_ = false, sent_end_ = false;
  bool launched_ = false, detached_ = false;
};

}  // namespace fleet
