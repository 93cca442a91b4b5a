// Something that answers the ranks of a node in a protocol of theirs while they run.
#pragma once

#include <string_view>

namespace fleet {

// The descriptor that a rank's service socket has in the rank.
inline constexpr int kServiceDescriptor = 3;

// Lives on the agent's loop, from the start of an epoch's ranks to their end. Not thread safe.
class RankService {
 public:
  virtual ~RankService() = default;
  // Bytes that a rank wrote to its service socket (RankCommand::service_socket), as they came.
  virtual void on_rank_said(int local_rank, std::string_view bytes) = 0;
};

}  // namespace fleet
