// state.json: the position of a checkpoint, and facts about the checkpoint itself.
#pragma once

#include <string>

#include "train/checkpoint.h"

namespace fleet {

inline constexpr char kStateFile[] = "state.json";
// Version 1 did not have checksums.
inline constexpr int kCheckpointVersion = 2;

// Facts in state.json about the checkpoint itself.
struct StateFacts {
  int ranks = 0;  // whose parts belong to it; 0: no parts
  int version = kCheckpointVersion;
  std::string needs = {};  // the name of another checkpoint in the same root; "": none
};

// Without the model card.
std::string state_text(const TrainingPosition& position, const StateFacts& facts);
// path: for errors. The version decides whether the other files have checksums. DamagedFile for
// other text; kUsage for another version.
TrainingPosition parse_state_text(const std::string& text, const std::string& path,
                                  StateFacts* facts);
// Like parse_state_text(), for a file.
TrainingPosition parse_state(const std::string& path, StateFacts* facts);

}  // namespace fleet
