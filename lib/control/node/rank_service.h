// A service that answers a node's ranks, in a protocol of their own, while they run.
#pragma once

#include <string_view>

namespace fleet {

// The descriptor number of a rank's service socket in the rank.
inline constexpr int kServiceDescriptor = 3;

// Lives on the agent's loop, from the start of a generation's ranks to their end. Not thread-safe.
class RankService {
 public:
  virtual ~RankService() = default;
  // Bytes that a rank wrote to its service socket (RankCommand::service_socket), unsplit.
  virtual void on_rank_bytes(int local_rank, std::string_view bytes) = 0;
};

}  // namespace fleet
