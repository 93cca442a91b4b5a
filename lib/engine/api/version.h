// The version of the library that a program runs with.
#pragma once

namespace fleet {

const char* version();  // "0.9.0"; only in libfleetrun.so

}  // namespace fleet
