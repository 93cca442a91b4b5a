// The mode of parameter servers and its settings, under plain names. strategy/server_mode.h reads
// them from a strategy.
#pragma once

#include <cstdint>
#include <string>

namespace fleet {

// The flag of steps whose updates a trainer makes itself (Program::add_flag): all in geo, none in
// sync and async.
inline constexpr char kLocalUpdateFlag[] = "local_update";

enum class ServerMode {
  kSync,   // an update is made of the gradients of all trainers, for which all of them wait
  kAsync,  // each gradient is applied when it arrives
  kGeo,    // trainers update their own parameters, and exchange differences every k steps
};
const char* name_of(ServerMode mode);  // "sync"

// The settings of a job with parameter servers, under plain names.
struct ServerSettings {
  ServerMode mode = ServerMode::kSync;
  int64_t geo_steps = 0;           // a_sync_configs.k_steps; 0 unless the mode is geo
  int merged_pushes = 1;           // max_merge_var_num: pushes that a trainer adds up to one
  int queue_size = 16;             // send_queue_size: pushes that wait before a step does
  int queue_waits = 1;             // send_wait_times: x 10 ms that an empty queue is waited for
  bool independent_pulls = false;  // independent_recv_thread
  int pushes_before_pull = 1;      // min_send_grad_num_before_recv
  int max_staleness = -1;          // steps that a trainer may be ahead of the slowest; -1: any
  std::string why;                 // the keys that decide the mode: "strategy.a_sync is not set"

  // Trainers do not wait for each other in a step.
  bool apart() const { return mode != ServerMode::kSync; }
  // "sync (strategy.a_sync is not set)"
  std::string text() const;
};

}  // namespace fleet
