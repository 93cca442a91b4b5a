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
  // One for each rank; its memory is the host's, or looks like it.
  std::function<std::unique_ptr<Device>()> make_device = [] {
    return std::make_unique<HostDevice>();
  };
  int size() const { return static_cast<int>(nodes.size()); }
};

inline GroupCase on_one_host(const std::string& backend, int size) {
  return {backend, std::vector<std::string>(size, "127.0.0.1")};
}

// The objects that a rank's test body works with.
struct Rank {
  Device& device;
  Communicator& comm;
  Stream& stream;  // the host's runs at once
  std::unique_ptr<Stream> make_stream(const std::string& name = "") const {
    return device.make_stream(name);
  }
  // Waits for what was enqueued on the stream, and throws where it failed.
  void finish(Stream& on) const {
    on.synchronize();
    comm.throw_if_failed();
  }
  void finish() const { finish(stream); }
};

// Calls body on a thread per rank. Every thread is waited for; then the first rank's error is
// rethrown. A rank that fails aborts its communicator, so that the others end too.
inline void run_ranks(const GroupCase& group, const std::function<void(Rank&)>& body) {
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
      const std::unique_ptr<Device> device = group.make_device();
      options.device = device.get();
      const std::unique_ptr<Communicator> comm = make_communicator(options);
      const std::unique_ptr<Stream> stream = device->make_stream("");
      Rank self{*device, *comm, *stream};
      try {
        body(self);
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
