// The process manager's side of PMI-1, by which programs of MPICH and its kin learn who they are
// and find each other, for the ranks of one node, as pure logic.
//
// A rank writes lines of key=value words and reads one line for each: PMI-1 "simple" wire protocol
// of MPICH (src/pmi/simple). Ranks put keys, meet at a barrier, and then get what others put.
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
    std::string name;                 // of the key-value space
    int size = 0;                     // ranks of the job
    int local_size = 0;               // ranks of this node
    std::vector<int> ranks_per_node;  // by node rank
  };
  // A line for a rank, with its end.
  using Tell = std::function<void(int local_rank, std::string line)>;
  // All ranks of this node are at the barrier: `puts` are their new keys, in a form for merge(). To
  // be answered by merge() with those of all nodes, its own too.
  using Exchange = std::function<void(int round, const std::string& puts)>;

  PmiServer(Job job, Tell tell, Exchange exchange);

  // Bytes that a rank wrote, as they came.
  void on_bytes(int local_rank, std::string_view bytes);
  // Every node's puts of the current round, one after the other: the barrier is over.
  void merge(const std::string& all_puts);

  // "(vector,(0,2,4),(2,1,3))": which ranks are on which node, for PMI_process_mapping.
  static std::string process_mapping(const std::vector<int>& ranks_per_node);

 private:
  using Words = std::map<std::string, std::string, std::less<>>;
  struct Rank {
    std::string unread;
    bool multi_line = false;  // within mcmd= ... endcmd
    bool at_barrier = false;
  };

  void on_line(int local_rank, std::string_view line);
  void answer(int local_rank, const std::string& command, const Words& words);
  void put(int local_rank, const Words& words);
  void get(int local_rank, const Words& words);
  void enter_barrier(int local_rank);
  void tell(int local_rank, const std::string& line) { tell_(local_rank, line + "\n"); }

  Job job_;
  Tell tell_;
  Exchange exchange_;
  std::vector<Rank> ranks_;
  Words values_;          // what everybody may read
  std::string new_puts_;  // of this node, since the last barrier
  int at_barrier_ = 0, round_ = 0;
};

}  // namespace fleet
