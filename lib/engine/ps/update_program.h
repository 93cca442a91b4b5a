// A server's Program: the operations that update the trainer's parameters, on the server's blocks.
#pragma once

#include <vector>

#include "graph/program.h"
#include "ps/placement.h"
#include "ps/served_model.h"

namespace fleet::ps {

struct ServerProgram {
  // The variables of a block; all have the shape [elements].
  struct BlockVars {
    VarId value = kNoVar;
    VarId gradient = kNoVar;  // a feed: the sum over the trainers
    VarId average = kNoVar;
    std::vector<VarId> states = {};
  };

  // Section "optimize", and "norms" for other servers. Without shared norms there is no
  // flag; else a run with the flag set computes the parts, and one without it updates.
  Program program;
  VarId learning_rate = kNoVar;   // a feed, float32 [1]; kNoVar: the server has no blocks
  VarId left_out = kNoVar;        // a feed, int32 [1]; kNoVar: no update is ever left out
  std::vector<BlockVars> blocks;  // by position in Placement::blocks_of(server)
  std::vector<VarId> counters;    // by position in ServedModel::counters
  FlagId norms_flag = kNoFlag;
  std::vector<VarId> parts;  // this server's of norm_parts(); float64
  // The parts of all servers, by shared norm: feeds, float64. kNoVar: not used by this server.
  std::vector<VarId> norms;
};

// trainer: the Program that `model` describes.
ServerProgram server_program(const Program& trainer, const ServedModel& model,
                             const Placement& placement, int server);

}  // namespace fleet::ps
