// Sharpness-aware minimisation (SAM; Foret et al. 2021, https://arxiv.org/abs/2010.01412).
//
// A step computes the gradient g at the weights w, then the gradient at w + e, and updates w by the
// latter:
//   e = rho * g / (|g| + 1e-12)
//   adaptive (ASAM; Kwon et al. 2021): e = rho * w^2 * g / (| |w| * g | + 1e-12)
// as in https://github.com/davda54/sam. The norm covers all parameters together, and g is
// summed over the ranks before, so that several ranks train as one. The second pass leaves running
// statistics as they are, and drops the same elements (dropout) as the first; losses and metrics
// come from the first.
#pragma once

#include "graph/program.h"

namespace fleet {

struct SamOptions {
  double rho = 0.05;
  bool adaptive = false;
};

// Call when gradients are complete on this rank (Program::gradient), before append_updates(): it
// makes the gradients at w + e those of the parameters, in section "sam". `backward`: the section
// of the first pass. loss_scaling: float32 [1], the factor of all gradients; kNoVar: 1.
// kUnsupported if a gradient has only some rows of its parameter.
void append_sam(Program& program, SectionId backward, VarId loss_scaling,
                const SamOptions& options);

}  // namespace fleet
