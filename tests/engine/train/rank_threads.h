// Ranks of one job as threads of this process.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "comm/factory.h"
#include "store/store.h"

namespace fleet {

struct RankThread {
  int rank, world;
  Communicator* communicator;    // "inprocess"; null in a world of one
  std::shared_ptr<Store> store;  // of all ranks
};

// The Error that a rank threw, if any.
struct RankEnd {
  std::string message;            // "": none
  std::optional<ErrorCode> code;  // of the same
  std::string where;              // of the same
  std::exception_ptr thrown;      // the same
};

// Runs `body` on each rank; returns when all have ended, how they did, by rank. Errors are caught.
[[nodiscard]] inline std::vector<RankEnd> run_ranks(int world,
                                                    const std::function<void(RankThread&)>& body) {
  std::vector<RankEnd> ends(world);
  const auto store = make_memory_store();
  std::vector<Thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back("rank" + std::to_string(rank), [&, rank] {
      try {
        std::unique_ptr<Communicator> communicator;
        if (world > 1) {
          communicator = make_communicator({.rank = rank,
                                            .size = world,
                                            .nodes = {},
                                            .store = store,
                                            .backend = "inprocess",
                                            .names = {}});
        }
        RankThread self{rank, world, communicator.get(), store};
        body(self);
      } catch (const Error& error) {
        ends[rank] = {error.what(), error.code(), error.where(), std::current_exception()};
      }
    });
  }
  for (Thread& thread : threads) thread.join();
  return ends;
}

// For ranks that are to end well: throws what the first of them threw.
inline void run_ranks_well(int world, const std::function<void(RankThread&)>& body) {
  for (const RankEnd& end : run_ranks(world, body)) {
    if (end.thrown) std::rethrow_exception(end.thrown);
  }
}

}  // namespace fleet
