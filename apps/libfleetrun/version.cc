#include "api/version.h"

namespace fleet {

const char* version() { return FLEET_VERSION; }

}  // namespace fleet
