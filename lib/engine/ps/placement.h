// The division of a job's parameters among its servers. Trainers and servers compute it
// independently and compare hashes. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fleet::ps {

struct PlacedParameter {
  std::string name;
  int64_t elements = 0;
  size_t element_bytes = 4;  // on its server: the value and its states
  bool whole = false;        // its update needs all elements on one server
};

// A variable that a server only keeps.
struct PlacedVar {
  std::string name;
  size_t bytes = 0;
};

// Elements [begin, end) of a parameter, in row-major order.
struct Block {
  int parameter = 0;  // index
  int64_t begin = 0, end = 0;
  int server = 0;
  int64_t elements() const { return end - begin; }
};

struct PlacementOptions {
  int64_t min_elements = 8192;  // a block has no fewer, unless the parameter has; as in Paddle
  int64_t alignment = 1024;     // blocks begin at multiples of this; divides min_elements
  // 1 GiB of values; a whole parameter may have twice that.
  int64_t max_elements = int64_t{1} << 28;
};

struct Placement {
  int servers = 1;
  std::vector<Block> blocks;                     // ordered by parameter and begin
  std::vector<int> kept;                         // the server of each PlacedVar
  std::vector<int> blocks_of(int server) const;  // indices, ascending
};

// Divides a parameter into at most one block per server, or more if they would be too large, and
// balances the bytes: each block, from the largest to the smallest, goes to the server with the
// least. kInternal for options that do not fit; kUnsupported naming a parameter that is too large
// and whole.
Placement place(std::span<const PlacedParameter> parameters, std::span<const PlacedVar> kept,
                int servers, const PlacementOptions& options = {});

// Equal if names, sizes and blocks are.
uint64_t hash_of(const Placement& placement, std::span<const PlacedParameter> parameters,
                 std::span<const PlacedVar> kept);

// A line per server: "server 0 holds 3 blocks of 2 parameters: 1.2 MiB, 3.6 MiB with states".
// updates: whether servers update the states; else (geo) they keep those that trainers begin with.
std::string text_of(const Placement& placement, std::span<const PlacedParameter> parameters,
                    std::span<const PlacedVar> kept, bool updates = true);

}  // namespace fleet::ps
