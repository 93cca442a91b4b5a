// A rank of the tests in this folder: sums until it fails, reports its start and the error that
// ends it.
//   comm_test_rank FOLDER RANK BACKEND TIMEOUT_MS NODE...
#include <cstdio>
#include <cstdlib>

#include "comm/factory.h"
#include "tensor/host.h"
#include "tests/engine/comm/file_store.h"

namespace fleet {
namespace {

void sum_until_it_fails(Communicator& comm, Store& store, int rank) {
  HostStream stream("comm");
  // Shared, private and small memory in turns.
  const Buffer shared = comm.allocate(1 << 20), own = HostDevice().allocate(1 << 20);
  for (int round = 0;; ++round) {
    auto* data = static_cast<float*>(round % 2 ? shared.data() : own.data());
    const size_t count = round % 3 ? (1 << 20) / sizeof(float) : 100;
    for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>(rank + round % 50);
    const View view = {data, count, DType::kFloat32};
    comm.all_reduce(view, view, ReduceOp::kSum, stream);
    stream.synchronize();
    const int n = comm.size();
    const auto expected = static_cast<float>(n * (n - 1) / 2 + n * (round % 50));
    for (size_t i = 0; i < count; ++i) {
      if (data[i] != expected) throw std::runtime_error("the sum is wrong");
    }
    if (round == 10) store.set("begun" + std::to_string(rank), "1");
  }
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  using namespace fleet;
  if (argc < 6) return 2;
  const auto store = std::make_shared<FileStore>(argv[1]);
  CommOptions options;
  options.rank = std::atoi(argv[2]);
  options.backend = argv[3];
  options.timeout = std::chrono::milliseconds(std::atoi(argv[4]));
  options.nodes.assign(argv + 5, argv + argc);
  options.size = argc - 5;
  options.store = store;
  try {
    const std::unique_ptr<Communicator> comm = make_communicator(options);
    try {
      sum_until_it_fails(*comm, *store, options.rank);
    } catch (const Error& error) {
      comm->abort(error);
      throw;
    }
  } catch (const Error& error) {
    store->set("end" + std::to_string(options.rank),
               std::string(name_of(error.code())) + ": " + error.what());
    return 0;
  } catch (const std::exception& error) {
    store->set("end" + std::to_string(options.rank), error.what());
  }
  return 1;
}
