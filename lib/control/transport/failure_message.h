// An Error as a message.
#pragma once

#include "base/error.h"
#include "transport/control_messages.h"

namespace fleet {

wire::Failure to_wire(const Error& error);
// kInternal for a code that this version does not know.
Error from_wire(const wire::Failure& failure);

}  // namespace fleet
