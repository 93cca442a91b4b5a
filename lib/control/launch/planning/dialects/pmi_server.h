// The process manager's side of PMI-1 for the ranks of one node, as pure logic. Programs of MPICH
// and its derivatives use PMI-1 to learn their rank and to find each other.
//
// A rank writes lines of key=value words and reads one line in reply to each, as in the PMI-1
// "simple" wire protocol of MPICH (src/pmi/simple). Ranks put keys, enter a barrier, and then get
// the keys of others.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fleet {

class PmiServer {
 public:
  struct Job {
    std::string name;                 // name of the key-value space
    int size = 0;                     // ranks of the job
    int local_size = 0;               // ranks of this node
    std::vector<int> ranks_per_node;  // by node rank
  };
  // Sends a line to a rank, newline included.
  using Send = std::function<void(int local_rank, std::string line)>;
  // Called when all ranks of this node are at the barrier. `puts` are their new keys, in the format
  // of merge(). Answer by calling merge() with the puts of all nodes, including this one.
  using Exchange = std::function<void(int round, const std::string& puts)>;

  PmiServer(Job job, Send send, Exchange exchange);

  // Adds bytes that a rank wrote.
  void on_bytes(int local_rank, std::string_view bytes);
  // Takes every node's puts of the current round, concatenated, and ends the barrier.
  void merge(const std::string& all_puts);

  // The value of PMI_process_mapping: which ranks are on which node, "(vector,(0,2,4),(2,1,3))".
  static std::string process_mapping(const std::vector<int>& ranks_per_node);

 private:
  using Words = std::map<std::string, std::string, std::less<>>;
  struct Rank {
    std::string unread;
    bool multi_line = false;  // within mcmd= ... endcmd
    bool at_barrier = false;
  };

  void on_line(int local_rank, std::string_view line);
  void handle(int local_rank, const std::string& command, const Words& words);
  void put(int local_rank, const Words& words);
  void get(int local_rank, const Words& words);
  void enter_barrier(int local_rank);
  void reply(int local_rank, const std::string& line) { send_(local_rank, line + "\n"); }

  Job job_;
  Send send_;
  Exchange exchange_;
  std::vector<Rank> ranks_;
  Words values_;          // readable by every rank
  std::string new_puts_;  // this node's puts since the last barrier
  int at_barrier_ = 0, round_ = 0;
};

}  // namespace fleet
