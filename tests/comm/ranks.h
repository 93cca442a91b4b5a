// Runs the ranks of a group as threads of this process.
#pragma once

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"
#include "comm/factory.h"
#include "tensor/host.h"

namespace fleet {

struct GroupCase {
  std::string backend;
  std::vector<std::string> nodes;  // of each rank
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  int size() const { return static_cast<int>(nodes.size()); }
};

inline GroupCase on_one_host(const std::string& backend, int size) {
  return {backend, std::vector<std::string>(size, "127.0.0.1")};
}

// Calls body on a thread per rank. Every thread is waited for; then the first rank's error is
// rethrown. A rank that fails aborts its communicator, so that the others end too.
inline void run_ranks(const GroupCase& group,
                      const std::function<void(Communicator&, Stream&)>& body) {
  std::shared_ptr<Store> store = make_memory_store();
  std::vector<Thread> threads;
  for (int rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back("rank " + std::to_string(rank), [=, &body] {
      CommOptions options;
      options.rank = rank;
      options.size = group.size();
      options.nodes = group.nodes;
      options.store = store;
      options.backend = group.backend;
      options.timeout = group.timeout;
      std::unique_ptr<Communicator> comm = make_communicator(options);
      HostStream stream("");
      try {
        body(*comm, stream);
      } catch (const Error& error) {
        comm->abort(error);
        throw;
      }
    });
  }
  std::exception_ptr first;
  for (size_t rank = 0; rank < threads.size(); ++rank) {
    try {
      threads[rank].join();
    } catch (const std::exception& error) {
      if (!first) first = std::current_exception();
      std::cerr << "rank " << rank << " failed: " << error.what() << "\n";
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace fleet
