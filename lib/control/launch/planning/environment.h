// The environment of a rank in the chosen dialects, and its share of the cores.
#pragma once

#include <map>
#include <memory>
#include <span>
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
// A node's first rank among the ranks of all nodes with its role, and their number.
struct RoleRanks {
  int first = 0, size = 0;
};
// Lists that grow with the world. It is equal for all ranks, so it is created once.
struct JobLists {
  // As ranks get them, keyed by name: NAME and its value, or NAME_FILE and a path.
  std::map<std::string, std::pair<std::string, std::string>> variables;
  std::vector<LongValue> files;              // contents of those paths
  std::vector<RoleRanks> roles;              // by node rank
  std::vector<std::vector<int>> nodes_with;  // by local rank: the nodes that have it, in order
};

std::vector<RoleRanks> role_ranks(const World& world);

// Facts that a rank needs besides the Assignment.
struct RankContext {
  std::string job_id;
  std::string log_dir;
  std::string log_level = "INFO";
  std::string with_gloo;  // PADDLE_WITH_GLOO with parameter servers
  int max_restarts = 0;
  int threads = 0;         // 0: leave OMP_NUM_THREADS unchanged
  int terminal_width = 0;  // columns of the terminal that shows this rank's output; 0: no terminal
  std::vector<std::string> dialects = {"paddle", "torch"};  // dialects of the environment
  int service_port = 0;          // loopback port of this node's key-value server; 0: none
  std::string interface = {};    // the network interface with this node's address; "" if unknown
  std::string credentials = {};  // CredentialsFile::path()
  std::string stop_signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";  // signals that end the job
  bool virtual_local_rank = false;   // LOCAL_RANK is 0, and the rank sees only its own GPUs:
  std::string visible_devices = {};  // its CUDA_VISIBLE_DEVICES
  std::string error_file = {};       // file in which the program may record its failure; "": none
  std::string steps_file = {};       // FLEET_STEPS_FILE of a trainer; "": none
  // The lists of the ranks' world, see with_lists().
  std::shared_ptr<const JobLists> lists = {};
};

// "ip:port" of the first trainer.
std::string first_endpoint(const World& world);
// "ip:port" of every trainer, or parameter server, by rank.
std::vector<std::string> endpoints_of(const World& world, bool servers);

// "0,1": numbers as text.
std::string join_numbers(std::span<const int> numbers, const char* separator);

// Longer values go through a file: the rank gets NAME_FILE with the path, and no NAME. This is
// Paddle's limit for its lists; Linux allows 128 KiB per string.
inline constexpr size_t kMaxValueBytes = 48000;

// Returns `context` with the lists of this world for its dialects. Call it once before requesting
// the environments of many ranks; the functions below call it if the lists are missing.
RankContext with_lists(const Assignment& assignment, RankContext context);
// The lists that go through files, the same for all ranks of a generation.
std::vector<LongValue> long_values(const Assignment& assignment, const RankContext& context);

// The variables of the printed table: those of the first dialect. For Paddle, those that its older
// launcher prints, in the same order. In a job with parameter servers, those of a role. With
// `others`, the variables of the other dialects follow.
Variables table_environment(const Assignment& assignment, int local_rank,
                            const RankContext& context = {}, bool others = false);
// All variables of a rank: those of each dialect, and fleetrun's own.
Variables rank_environment(const Assignment& assignment, int local_rank,
                           const RankContext& context);
// The variables to remove: secrets, and for a parameter server those of a trainer. Of NAME and
// NAME_FILE only the one in `set`, the rank's own, remains.
std::vector<std::string> removed_environment(const Assignment& assignment, int local_rank,
                                             const Variables& set = {});

}  // namespace fleet
