// A command line of fleetrun, in its own words, torchrun's, Paddle's, mpirun's, srun's...
#include <dlfcn.h>
#include <netdb.h>

#include "base/text.h"
#include "launch/planning/arguments.h"
#include "launch/planning/options.h"
#include "tests/fuzz/fuzz.h"

// Names in a list of hosts are not looked up: it would take seconds, and bother a server.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto original = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  addrinfo numeric{};
  if (hints) numeric = *hints;
  numeric.ai_flags |= AI_NUMERICHOST;
  return original(name, service, &numeric, found);
}

// Words as in a shell; "doctor" before them reads those of `fleetrun doctor`.
FLEET_FUZZ(options) {
  for (const char* folder : {"/dev", "/proc", "/sys"}) {  // host files that never end
    if (bytes.find(folder) != bytes.npos) return;
  }
  std::vector<std::string> words = fleet::shell_words(std::string(bytes), "fuzz");
  for (const std::string& word : words) {
    if (word.find('\0') != word.npos) return;  // no process gets such a word
  }
  const bool doctor = !words.empty() && words[0] == "doctor";
  if (doctor) words.erase(words.begin());
  const fleet::LaunchRequest request = fleet::parse_arguments(
      words, doctor ? fleet::ArgumentsFor::kDoctor : fleet::ArgumentsFor::kStart);
  using Action = fleet::LaunchRequest::Action;
  if (request.action == Action::kRun || request.action == Action::kPrintConfig) {
    fleet::print_options(request.settings);
  }
}
