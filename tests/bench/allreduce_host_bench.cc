// Links: comm base
// Libraries: gloo
//
// All-reduce between processes of one host: shm, with the gradients in the shared segment, against
// the best of Gloo's own algorithms, in turns within one run. A line "copied" is shm on memory from
// elsewhere. Usage: bench_allreduce_host [ranks]
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "comm/factory.h"
#include "tensor/host.h"
#include "tests/engine/comm/file_store.h"

namespace fleet {
namespace {

using Clock = std::chrono::steady_clock;

struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> times;  // ms
  bool dropped = false;
  double median() {
    if (dropped) return 1e30;
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
};

// A context for each contender: with one for all, Gloo's newer calls were seen to wait forever
// among four ranks.
std::shared_ptr<::gloo::Context> gloo_context(int rank, int size, const std::string& folder) {
  std::filesystem::create_directories(folder);
  ::gloo::transport::tcp::attr attributes("127.0.0.1");
  auto device = ::gloo::transport::tcp::CreateDevice(attributes);
  ::gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<::gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  return context;
}

Contender new_api(const std::string& name, std::shared_ptr<::gloo::Context> context, float* data,
                  size_t count, ::gloo::AllreduceOptions::Algorithm algorithm) {
  return {"gloo::allreduce " + name,
          [=] {
            ::gloo::AllreduceOptions options(context);
            options.setOutput(data, count);
            options.setAlgorithm(algorithm);
            options.setMaxSegmentSize(4 << 20);
            options.setReduceFunction([](void* to, const void* a, const void* b, size_t n) {
              ::gloo::sum<float>(to, a, b, n);
            });
            ::gloo::allreduce(options);
          },
          {},
          false};
}

// Those far behind the best of Gloo's after two rounds only cost time. Rank 0 decides.
void drop_hopeless(Communicator& comm, Stream& stream, std::vector<Contender>& all) {
  double best = 1e30;
  for (size_t i = 2; i < all.size(); ++i) best = std::min(best, all[i].median());
  for (size_t i = 2; i < all.size(); ++i) {
    uint8_t drop = all[i].median() > 2.5 * best;
    comm.broadcast({&drop, 1, DType::kUInt8}, 0, stream);
    all[i].dropped = drop;
  }
}

template <typename Algorithm>
Contender old_api(const std::string& name, std::shared_ptr<::gloo::Context> context, float* data,
                  size_t count) {
  auto algorithm =
      std::make_shared<Algorithm>(context, std::vector<float*>{data}, static_cast<int>(count));
  return {name, [algorithm] { algorithm->run(); }, {}, false};
}

void measure(Communicator& comm, const std::string& folder, size_t mib) {
  int contexts = 0;
  const auto context = [&] {
    return gloo_context(comm.rank(), comm.size(),
                        folder + "/" + std::to_string(mib) + "." + std::to_string(contexts++));
  };
  const size_t count = (mib << 20) / sizeof(float);
  HostStream stream("");
  const Buffer shared = comm.allocate(count * 4), own = HostDevice().allocate(count * 4),
               peer = HostDevice().allocate(count * 4);
  const auto reduce = [&](const Buffer& buffer) {
    const View view = {buffer.data(), count, DType::kFloat32};
    return [&, view] { comm.all_reduce(view, view, ReduceOp::kSum, stream); };
  };
  auto* data = static_cast<float*>(peer.data());
  using Algorithm = ::gloo::AllreduceOptions::Algorithm;
  std::vector<Contender> all;
  all.push_back({"shm", reduce(shared), {}, false});
  all.push_back({"copied", reduce(own), {}, false});
  all.push_back(new_api("ring", context(), data, count, Algorithm::RING));
  all.push_back(new_api("bcube", context(), data, count, Algorithm::BCUBE));
  all.push_back(old_api<::gloo::AllreduceRing<float>>("AllreduceRing", context(), data, count));
  all.push_back(
      old_api<::gloo::AllreduceRingChunked<float>>("AllreduceRingChunked", context(), data, count));
  all.push_back(old_api<::gloo::AllreduceHalvingDoubling<float>>("AllreduceHalvingDoubling",
                                                                 context(), data, count));
  all.push_back(old_api<::gloo::AllreduceBcube<float>>("AllreduceBcube", context(), data, count));

  static_cast<float*>(shared.data())[count - 1] = 1;
  all[0].run();
  if (static_cast<float*>(shared.data())[count - 1] != static_cast<float>(comm.size())) {
    throw Error(ErrorCode::kInternal, "the sum is wrong");
  }
  const int rounds = mib >= 100 ? 9 : mib >= 10 ? 15 : 41;
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    if (round == 2) drop_hopeless(comm, stream, all);
    for (Contender& contender : all) {
      if (contender.dropped) continue;
      comm.barrier(stream);
      const auto start = Clock::now();
      contender.run();
      comm.barrier(stream);  // the slowest rank counts
      const std::chrono::duration<double, std::milli> time = Clock::now() - start;
      if (round >= 0) contender.times.push_back(time.count());
    }
  }
  if (comm.rank() != 0) return;
  const auto best = std::min_element(all.begin() + 2, all.end(), [](Contender& a, Contender& b) {
    return a.median() < b.median();
  });
  for (int ours : {0, 1}) {
    std::printf(
        "allreduce_host[%d ranks, %zu MiB%s]: ratio %.2f (ours %.3f ms, Gloo %.3f ms: %s)\n",
        comm.size(), mib, ours ? ", copied" : "", best->median() / all[ours].median(),
        all[ours].median(), best->median(), best->name.c_str());
  }
  std::fflush(stdout);
}

void run_rank(int rank, int size, const std::string& folder) {
  CommOptions options;
  options.rank = rank;
  options.size = size;
  options.store = std::make_shared<FileStore>(folder);
  std::unique_ptr<Communicator> comm = make_communicator(options);
  for (size_t mib : {1, 25, 100}) measure(*comm, folder, mib);
}

bool run_group(int size) {
  char folder[] = "/tmp/bench_allreduce_XXXXXX";
  if (!::mkdtemp(folder)) throw_errno("cannot make a folder");
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      int code = 0;
      try {
        run_rank(rank, size, folder);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        code = 1;
      }
      std::fflush(stdout);
      ::_exit(code);
    }
    children.push_back(child);
  }
  bool good = true;
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  std::filesystem::remove_all(folder);
  return good;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  bool good = true;
  for (int size : {2, 4}) {
    if (argc > 1 && std::atoi(argv[1]) != size) continue;
    good = fleet::run_group(size) && good;
  }
  return good ? 0 : 1;
}
