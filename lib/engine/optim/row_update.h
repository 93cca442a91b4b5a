// Updates of single rows of a parameter, for gradients that have only the rows of a step
// (embedding_grad_rows).
//
// Inputs: learning_rate, gradient_scale, found_inf and step as of all updates (optim/update_op.h);
// rows int64 [M], each the number of a row of the parameter or -1 (an unused slot), none twice;
// values float32 [M, D], the gradients of these rows; parameter float32 [V, D]; its states.
// Outputs: parameter and states, the same variables. Other rows stay as they are: for the rules
// that have such an operation, an update with a gradient of 0 changes nothing, so that the results
// are the bits of the whole update.
#pragma once

#include "optim/update_op.h"

namespace fleet {

// Positions among the inputs. States follow the parameter.
inline constexpr int kRowUpdateRows = 4, kRowUpdateValues = 5, kRowUpdateParameter = 6;

// Defines slots and shape rule of the operation "<rule>_rows".
void define_row_update_op(OpDef& def, bool needs_step, const std::vector<std::string>& states);

// The rows of a gradient that has only some; kNoVar if it is whole.
VarId rows_of_gradient(const Program& program, VarId gradient);

// Appends the operation "<type>_rows" instead of the operation `type` for update.rows. kUsage
// naming the parameter if the rule has none, or if all rows change in each step or are copied.
void append_row_update_op(UpdateContext& context, const Update& update, const std::string& type,
                          const std::vector<VarId>& states, Attributes attributes,
                          std::vector<VarId> scalars);

}  // namespace fleet
