// Registry of backends by name: the devices on which this process can compute.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace fleet {

struct BackendDef {
  // Number of devices. If there are none, *why gives the reason as a clause.
  int (*device_count)(std::string* why) = nullptr;
  // The backend's own options.
  Schema options = {};
  // Creates device `index`, 0 <= index < device_count(). own: values of the schema `options`.
  std::unique_ptr<Device> (*make_device)(int index, const DeviceOptions& options,
                                         const Settings& own) = nullptr;
  // See low_precision_types().
  std::vector<DType> (*low_precision)(std::string* why) = nullptr;
  // Passes whose operations only this backend has kernels for.
  std::vector<std::string> passes = {};
  // Its devices use the host's memory, so copies to the host free none of theirs.
  bool uses_host_memory = false;
  // They compute on the host's cores, so the number of cores decides their speed.
  bool uses_host_cores = false;
  // By boolean option of a model, such as "winograd": the line to log for a job that sets it to
  // false, if that has no effect on this backend, or another one than the name says.
  std::map<std::string, std::string> false_notes = {};
};

// A backend registers itself when its module is linked or loaded.
Registry<BackendDef>& backends();
// FLEET_BACKEND(cpu) { def.make_device = ...; } in lib/engine/backend/cpu/backend.cc.
#define FLEET_BACKEND(name) \
  FLEET_REGISTER(backend_##name, ::fleet::BackendDef& def, ::fleet::backends().define, #name)
// The names of a backend's own options; none if it is neither linked nor loaded.
std::vector<std::string> options_of_backend(const std::string& backend);
// A backend's own description; a BackendDef() if it is neither linked nor loaded.
const BackendDef& backend_def(const std::string& name);
// Whether the backend's kernels are available: linked, or loaded by choose_device(), with or
// without a device.
bool has_backend(const std::string& name);

// The 16-bit types that are faster than float32 on this backend here, in order of preference. If
// there are none, *why gives the reason as a clause. The backend must be linked or loaded already.
std::vector<DType> low_precision_types(const std::string& backend, std::string* why);

// See BackendDef::passes; none if the backend is neither linked nor loaded.
std::vector<std::string> passes_of_backend(const std::string& backend);

// Devices other than the CPU that a job can ask for by name ("cuda"). Their modules are loaded on
// demand, so that a program without them starts without their libraries.
std::vector<std::string> accelerators();
bool is_accelerator(const std::string& backend);
// Devices that a job can ask for: "auto", "cpu" and the accelerators.
std::vector<std::string> device_names();

struct DeviceChoice {
  std::unique_ptr<Device> device;
  std::string note;  // one line for the log if the device is not the requested one; otherwise empty
  std::string reason;  // as a clause, without its consequence
  std::string
      missing;  // the accelerator that was requested by name but is not here; otherwise empty
  // "auto" found no device of an accelerator that this build supports.
  bool unusable = false;
};

// wanted: one of device_names(). "auto" uses the first accelerator that has a device. An
// accelerator gives its device `index`; without one, the choice is the CPU with a note that gives
// the reason. A backend that is not linked is loaded from libfleet_<name>.so next to the program or
// in ../lib/fleetrun. own: options of backends; the chosen one takes those of its schema, and the
// others have no effect (options_of_backend() tells which). kUsage for another name or an invalid
// option, or if devices exist but none with this index; for the latter kIo if a launcher has
// assigned the index.
DeviceChoice choose_device(const std::string& wanted, int index, const DeviceOptions& options = {},
                           const ConfigTree& own = {}, bool assigned = false);

// The backend of the device that choose_device() would choose, without making the device. For an
// accelerator that was named and is not here: its backend, if its module can be loaded.
std::string backend_of_device(const std::string& wanted);

}  // namespace fleet
