// The inputs of a rank's environment besides the Assignment.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

using Variables = std::vector<std::pair<std::string, std::string>>;

// A value that is too long for an environment variable, and the file that holds it instead.
struct LongValue {
  std::string name, path, value;
};
// The variables that grow with the world. They are equal for all ranks, so they are created once.
struct JobLists {
  // As ranks get them, keyed by name: NAME and its value, or NAME_FILE and a path.
  std::map<std::string, std::pair<std::string, std::string>> variables;
  std::vector<LongValue> files;  // contents of those paths
};

// Facts that a rank needs besides the Assignment.
struct RankContext {
  std::string job_id;
  std::string log_dir;
  std::string log_level = "INFO";
  std::string with_gloo;  // PADDLE_WITH_GLOO with parameter servers
  int max_restarts = 0;
  int threads = 0;         // 0: leave OMP_NUM_THREADS unchanged
  int terminal_width = 0;  // of the terminal that shows this rank's output; 0: no terminal
  std::vector<std::string> dialects = {"paddle", "torch"};  // dialects of the environment
  int service_port = 0;          // loopback port of this node's key-value server; 0: none
  std::string interface = {};    // the network interface with this node's address; "" if unknown
  std::string credentials = {};  // CredentialsFile::path()
  std::string stop_signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";  // signals that end the job
  bool virtual_local_rank = false;   // LOCAL_RANK is 0, and the rank sees only its own GPUs:
  std::string visible_devices = {};  // its CUDA_VISIBLE_DEVICES
  std::string error_file = {};       // file in which the program may record its failure; "": none
  // The lists of the ranks' world, see with_lists().
  std::shared_ptr<const JobLists> lists = {};
};

// "ip:port" of the first trainer.
std::string first_endpoint(const World& world);
// "ip:port" of every trainer, or parameter server, by rank.
std::vector<std::string> endpoints_of(const World& world, bool servers);

// "0,1": numbers as text.
std::string join_numbers(const std::vector<int>& numbers, const char* separator);

}  // namespace fleet
