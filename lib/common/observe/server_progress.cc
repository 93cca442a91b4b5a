#include "observe/server_progress.h"

#include "base/env.h"
#include "observe/progress_layout.h"

namespace fleet {

ServerProgressWriter ServerProgressWriter::from_env() {
  const auto path = get_env(kEnvProgressFile);
  return path ? ServerProgressWriter(*path) : ServerProgressWriter();
}

ServerProgressWriter::ServerProgressWriter(const std::string& path)
    : memory_(SharedMemory::open(path, sizeof(ProgressLayout), kProgressMagic)) {}

void ServerProgressWriter::publish(const ServerProgress& progress) {
  if (memory_) memory_.as<ProgressLayout>().server.publish(progress);
}

void ServerProgressWriter::publish(const ServerUse& use) {
  if (memory_) memory_.as<ProgressLayout>().use.publish(use);
}

}  // namespace fleet
