#include "tensor/stream_timer.h"

namespace fleet {
namespace {

Registry<StreamTimerDef>& timers() {
  static Registry<StreamTimerDef> registry("stream timer");
  return registry;
}

}  // namespace

bool define_stream_timer(const std::string& backend, void (*define)(StreamTimerDef&)) {
  return timers().define(backend, define);
}

std::unique_ptr<StreamTimer> make_stream_timer(const Device& device, size_t marks) {
  const StreamTimerDef* def = timers().find(device.backend());
  return def ? def->make(device, marks) : nullptr;
}

}  // namespace fleet
