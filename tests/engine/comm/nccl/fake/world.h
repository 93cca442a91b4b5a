// The ranks of one communicator of the fake NCCL, and how they do an operation together.
#pragma once

#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace fleet::fake_nccl {

struct Operation {
  std::string name;
  const void* in = nullptr;
  void* out = nullptr;
  size_t count = 0;  // as NCCL has it: of all_gather's in and reduce_scatter's out
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
};

struct Message {
  void* data;
  size_t count;
  ncclDataType_t type;
  int peer;
};

// Every call returns early where `aborted` becomes true, without a word, as a GPU's kernel does.
class World {
 public:
  // hanging: it is complete at once, and operations of several ranks end only by being aborted.
  World(int size, bool hanging) : size_(size), hanging_(hanging) {}
  void join();
  bool complete();
  void wake();
  // `number`: which one it is for this rank; all ranks' calls of one number are one operation. Ends
  // the process where they differ, or where two with the same in and out are not NCCL's in place.
  void run(int rank, uint64_t number, const Operation& operation, const std::atomic<bool>& aborted);
  void send(int rank, const Message& message, const std::atomic<bool>& aborted);
  void recv(int rank, const Message& message, const std::atomic<bool>& aborted);

 private:
  struct Slot {  // of one operation
    Operation operation;
    std::map<int, std::vector<char>> inputs;  // by rank
    int done = 0;
  };
  void finish(int rank, const Operation& operation, Slot& slot);

  const int size_;
  const bool hanging_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int joined_ = 0;
  std::map<uint64_t, Slot> slots_;
  std::map<std::pair<int, int>, std::vector<std::vector<char>>> mail_;  // from, to
};

}  // namespace fleet::fake_nccl
