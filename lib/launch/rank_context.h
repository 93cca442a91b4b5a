// What the environment of a rank is made from, beside the Assignment.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

using Variables = std::vector<std::pair<std::string, std::string>>;

// A value that is too long for an environment, and the file that has it instead.
struct LongValue {
  std::string name, path, value;
};
// The variables that grow with the world: alike for all of its ranks, and so made once for them.
struct JobLists {
  // As ranks get them, by name: NAME and its value, or NAME_FILE and a path.
  std::map<std::string, std::pair<std::string, std::string>> variables;
  std::vector<LongValue> files;  // what those paths hold
};

// What a rank needs to know beyond the Assignment.
struct RankContext {
  std::string job_id;
  std::string log_dir;
  std::string log_level = "INFO";
  std::string with_gloo;  // PADDLE_WITH_GLOO of the parameter-server mode
  int max_restarts = 0;
  int threads = 0;         // 0: OMP_NUM_THREADS is left alone
  int terminal_width = 0;  // of the terminal that shows this rank's output; 0: none does
  std::vector<std::string> dialects = {"paddle", "torch"};  // in which the environment is written
  int service_port = 0;          // on loopback, of this node's key-value server; 0: there is none
  std::string interface = {};    // the network interface with this node's address; "" where unknown
  std::string credentials = {};  // CredentialsFile::path()
  std::string stop_signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";  // that end the job
  bool virtual_local_rank = false;   // LOCAL_RANK is 0, and only the rank's own GPUs are visible:
  std::string visible_devices = {};  // these, as of CUDA_VISIBLE_DEVICES
  std::string error_file = {};       // where the program may record its failure; "": nowhere
  // Of the world that the ranks are in, see with_lists(). Dialects that have lists find them here.
  std::shared_ptr<const JobLists> lists = {};
};

// "ip:port" of the first trainer.
std::string first_endpoint(const World& world);
// "ip:port" of every trainer, or parameter server, by rank.
std::vector<std::string> endpoints_of(const World& world, bool servers);

// "0,1": numbers as text.
std::string join_numbers(const std::vector<int>& numbers, const char* separator);

}  // namespace fleet
