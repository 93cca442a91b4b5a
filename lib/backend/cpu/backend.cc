#include "exec/backend.h"

#include "tensor/host.h"

namespace fleet {
namespace {

[[maybe_unused]] const bool registered = register_backend(
    "cpu", {.device_count = [](std::string*) { return 1; },
            .make_device = [](int, const DeviceOptions& options) -> std::unique_ptr<Device> {
              return std::make_unique<HostDevice>(options);
            }});

}  // namespace
}  // namespace fleet
