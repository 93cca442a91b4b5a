// A rank on a GPU, for ../multiproc: writes the error that ends it to a file.
//   PROGRAM FOLDER RANK TASK TIMEOUT_MS NODE...
//   TASK  check: everything once, then ends with "ok"; sum: sums until it fails
#include <cstdlib>
#include <cstring>
#include <string>

#include "comm/factory.h"
#include "tests/engine/comm/file_store.h"
#include "tests/engine/comm/nccl/check_all.h"
#include "tests/engine/comm/nccl/rank/gpu.h"

namespace fleet {
namespace {

void sum_for_ever(Communicator& comm, Device& device, Store& store) {
  const auto stream = device.make_stream("comm");
  const Buffer memory = comm.allocate(1 << 20);
  const View view = {memory.data(), (1 << 20) / sizeof(float), DType::kFloat32};
  for (;;) {
    comm.all_reduce(view, view, ReduceOp::kMax, *stream);
    store.set("begun" + std::to_string(comm.rank()), "1");
    stream->synchronize();
    comm.throw_if_failed();
  }
}

std::string run(const CommOptions& options, const std::string& task) {
  const std::unique_ptr<Communicator> comm = make_communicator(options);
  try {
    if (task == "sum") sum_for_ever(*comm, *options.device, *options.store);
    check_all(*comm, *options.device);
  } catch (const Error& error) {
    comm->abort(error);
    throw;
  }
  return "ok";
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  using namespace fleet;
  if (argc < 6) return 2;
  const auto store = std::make_shared<FileStore>(argv[1]);
  CommOptions options;
  options.rank = std::atoi(argv[2]);
  options.timeout = std::chrono::milliseconds(std::atoi(argv[4]));
  options.nodes.assign(argv + 5, argv + argc);
  options.size = argc - 5;
  options.store = store;
  std::string end;
  try {
    const std::unique_ptr<Device> device = gpu_of_rank(options.rank);
    options.device = device.get();
    end = run(options, argv[3]);
  } catch (const Error& error) {
    end = std::string(name_of(error.code())) + ": " + error.what();
  } catch (const std::exception& error) {
    end = error.what();
  }
  store->set("end" + std::to_string(options.rank), end);
  return end == "ok" ? 0 : 1;
}
