// The launcher: see lib/launch.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "launch/launch.h"

int main(int argc, char** argv) {
  int code = 1;
  try {
    code = fleet::launch(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const fleet::Error& error) {
    std::fprintf(stderr, "fleetrun: %s\n", error.what());
    code = fleet::exit_code_for(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fleetrun: %s\n", error.what());
  }
  std::fflush(nullptr);
  // Taking down gRPC's globals would only cost time: everything of the job has ended.
  ::_exit(code);
}
