// A rank of `scripts/bench.sh links`: times all_reduce between ranks that fleetrun has started.
//   bench_link_allreduce [--backend=NAME] [--bytes=N] [--messages=M] [--rounds=R]
// One round sums M messages of N bytes each, one after the other. Rank 0 prints
// "median MS ms, least MS ms, sent BYTES bytes a round, through NAME".
//
// Links: comm rendezvous base
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/factory.h"
#include "rendezvous/store_client.h"
#include "tensor/host.h"
#include "tests/bench/times.h"

namespace fleet {
namespace {

struct Given {
  std::string backend = "auto";
  size_t bytes = 25 << 20, messages = 1;
  int rounds = 9;
};

Given read(int argc, char** argv) {
  Given given;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value_of = [&](const std::string& name) {
      return argument.starts_with(name) ? argument.substr(name.size()) : std::string();
    };
    if (const auto text = value_of("--backend="); !text.empty()) {
      given.backend = text;
    } else if (const auto bytes = value_of("--bytes="); !bytes.empty()) {
      given.bytes = std::stoull(bytes);
    } else if (const auto messages = value_of("--messages="); !messages.empty()) {
      given.messages = std::stoull(messages);
    } else if (const auto rounds = value_of("--rounds="); !rounds.empty()) {
      given.rounds = std::stoi(rounds);
    } else {
      throw Error(ErrorCode::kUsage, "unknown argument", argument, "see the top of the file");
    }
  }
  return given;
}

CommOptions options_from_env(const std::string& backend) {
  CommOptions options;
  options.rank = static_cast<int>(env_int_or("PADDLE_TRAINER_ID", 0));
  options.size = static_cast<int>(env_int_or("PADDLE_TRAINERS_NUM", 1));
  for (const auto& endpoint :
       split(get_env_or_file("PADDLE_TRAINER_ENDPOINTS").value_or(""), ',')) {
    options.nodes.push_back(endpoint.substr(0, endpoint.rfind(':')));
  }
  options.store = connect_store_from_env();
  options.backend = backend;
  return options;
}

void run(const Given& given) {
  const CommOptions options = options_from_env(given.backend);
  const auto comm = make_communicator(options);
  HostStream stream("comm");
  const Buffer memory = comm->allocate(given.bytes * given.messages);
  const size_t count = given.bytes / sizeof(float);
  std::vector<double> times;
  int64_t sent = 0;
  for (int round = 0; round < given.rounds + 2; ++round) {  // the first two warm up
    comm->barrier(stream);
    stream.synchronize();
    const int64_t before = comm->traffic()->sent;
    const auto begin = std::chrono::steady_clock::now();
    for (size_t m = 0; m < given.messages; ++m) {
      const View view = {static_cast<char*>(memory.data()) + m * given.bytes, count,
                         DType::kFloat32};
      comm->all_reduce(view, view, ReduceOp::kSum, stream);
    }
    stream.synchronize();
    if (round >= 2) times.push_back(ms_since(begin));
    sent = comm->traffic()->sent - before;
  }
  comm->barrier(stream);
  stream.synchronize();
  if (comm->rank() != 0) return;
  std::printf("median %.3f ms, least %.3f ms, sent %lld bytes a round, through %s\n", median(times),
              *std::min_element(times.begin(), times.end()), static_cast<long long>(sent),
              comm->name().c_str());
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  using namespace fleet;
  if (!get_env("PADDLE_TRAINER_ID")) {
    std::printf("SKIP: a rank of scripts/bench.sh links, which starts it\n");
    return 0;
  }
  try {
    run(read(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
