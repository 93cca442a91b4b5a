// Requests of two ranks of an MPI program to the process manager.
#include <optional>

#include "launch/planning/dialects/pmi_server.h"
#include "tests/fuzz/fuzz.h"

// Pieces with a byte before each: which rank writes, and how many bytes.
FLEET_FUZZ(pmi) {
  std::optional<std::string> exchanged;
  const auto tell = [](int local_rank, const std::string& line) {
    fleet::fuzz::require(local_rank == 0 || local_rank == 1, "only the node's ranks are answered");
    fleet::fuzz::require(line.find('\n') + 1 == line.size(), "an answer is one line");
  };
  fleet::PmiServer server({.name = "job", .size = 4, .local_size = 2, .ranks_per_node = {2, 2}},
                          tell, [&](int, const std::string& puts) { exchanged = puts; });
  while (!bytes.empty()) {
    const uint8_t head = fleet::fuzz::take_byte(&bytes);
    const size_t size = std::min<size_t>(head >> 1, bytes.size());
    server.on_bytes(head & 1, bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (!exchanged) continue;
    const std::string all = *exchanged + "other=1\n";
    exchanged.reset();
    server.merge(all);
  }
}
