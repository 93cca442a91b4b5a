// The phases of a job in the rendezvous: each is a type with the state that only it has.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "diagnosis/bottleneck.h"
#include "diagnosis/live_table.h"
#include "diagnosis/root_cause.h"
#include "diagnosis/straggler_detector.h"
#include "rendezvous/membership.h"
#include "rendezvous/types.h"

namespace fleet {

// A scope for their names, which JobState uses unqualified.
struct JobPhases {
  using Time = std::chrono::steady_clock::time_point;
  enum class Phase { kFailingOver, kForming, kRunning, kStopping, kGathering, kAgreeing, kEnded };

  // Nodes are missing.
  struct Waiting {
    Time began, due;  // due: when to give up or, while forming, to begin with fewer nodes
    Time next_progress;
  };
  // A generation is over, and the next has not begun.
  struct GenerationOver {
    Verdict cause;                // why the generation ended
    std::optional<Verdict> lost;  // the last node lost since then
    const Verdict& reason() const {
      return lost ? *lost : cause;
    }  // for a job that cannot continue
  };
  // A world counts once a majority of its base, the preceding world, has accepted it: those nodes
  // follow no other world with that base.
  struct Base {
    int nodes = 0;           // 0: none, or known to count
    std::set<int> accepted;  // ranks in the base
    bool committed() const;
  };
  // The host was lost: nodes of the last generation reconnect here.
  struct FailingOver : Waiting {
    static constexpr Phase kPhase = Phase::kFailingOver;
    Verdict lost;
    Time generation_began;
    std::optional<int64_t> step;          // that the generation has reached, as far as known
    std::shared_ptr<const World> before;  // the base of world_, if it may count instead
    Base base;
  };
  struct Forming : Waiting {  // nodes join
    static constexpr Phase kPhase = Phase::kForming;
  };
  // A stack collection in progress, for a hang or on request.
  struct StackCollection {
    Time due;
    std::set<int> awaited = {};  // nodes
    Stacks stacks = {};
    std::vector<SessionId> requesters = {};
    std::optional<RankStall> hang = {};  // the first rank that was reported
    int node_rank = -1;                  // that rank's node
  };
  struct Running {
    static constexpr Phase kPhase = Phase::kRunning;
    Time began;
    std::set<int> unfinished;      // nodes
    RootCauseAnalyzer root_cause;  // failures that await the verdict
    std::optional<Verdict> lost;   // a node whose loss ends this generation
    std::optional<StopCommand> stop;
    std::optional<RankExit> killed;  // a rank that a launcher stopped without an order
    std::optional<StackCollection> stacks;
    std::optional<Time> scale_up_due;  // when to restart with nodes that have joined
    StragglerDetector stragglers;
    LiveTable live;
    BottleneckAnalyzer bottleneck;
  };
  struct Stopping : GenerationOver {  // the ranks of the last generation are being stopped
    static constexpr Phase kPhase = Phase::kStopping;
    std::set<SessionId> awaited;
  };
  struct Gathering : Waiting, GenerationOver {  // nodes are missing for the next generation
    static constexpr Phase kPhase = Phase::kGathering;
  };
  struct Agreeing : GenerationOver {  // the next world was sent and not all nodes have accepted it
    static constexpr Phase kPhase = Phase::kAgreeing;
    std::map<SessionId, int> awaited;  // and their ranks in the base; -1: none
    Base base;
  };
  struct Ended {
    static constexpr Phase kPhase = Phase::kEnded;
    std::string outcome;
    std::optional<Verdict> verdict;  // nullopt if the job never ran for lack of nodes
  };

  using Any = std::variant<FailingOver, Forming, Running, Stopping, Gathering, Agreeing, Ended>;
};

}  // namespace fleet
