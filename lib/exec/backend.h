// Backends by name: which devices this process can compute on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "tensor/dtype.h"

namespace fleet {

struct BackendDef {
  // How many devices there are. Where there are none, *why says so in a clause.
  int (*device_count)(std::string* why) = nullptr;
  // Device `index` of them, 0 <= index < device_count().
  std::unique_ptr<Device> (*make_device)(int index, const DeviceOptions& options) = nullptr;
  // See low_precision_types().
  std::vector<DType> (*low_precision)(std::string* why) = nullptr;
  // Passes whose operations only this backend has kernels for.
  std::vector<std::string> passes = {};
};

// A backend registers itself when its room is linked, or when its module is loaded.
bool register_backend(const std::string& name, BackendDef def);
// Whether its kernels are here: linked, or loaded by choose_device(), with a device or without.
bool has_backend(const std::string& name);

// The 16-bit types in which this backend is faster here than in float32, the one to prefer first.
// Where there are none, *why says so in a clause. The backend is linked or loaded already.
std::vector<DType> low_precision_types(const std::string& backend, std::string* why);

// See BackendDef::passes; none if the backend is neither linked nor loaded.
std::vector<std::string> passes_of_backend(const std::string& backend);

// Devices beside the CPU that a job can ask for by name ("cuda"). Their modules are loaded on
// demand, so that a program without them starts without their libraries.
std::vector<std::string> accelerators();
bool is_accelerator(const std::string& backend);
// What a job may ask for: "auto", "cpu" and the accelerators.
std::vector<std::string> device_names();

struct DeviceChoice {
  std::unique_ptr<Device> device;
  std::string note;  // one line for the log where it is another device than the one asked for; else
                     // empty
  std::string reason;   // the same as a clause, without what it leads to
  std::string missing;  // the accelerator that was asked for by name and is not here; else empty
};

// wanted: one of device_names(). "auto" takes the first accelerator that has a device. An
// accelerator gives its device `index`; without one, the choice is the CPU and the note says why.
// A backend that is not linked is loaded from libfleet_<name>.so beside the program or in
// ../lib/fleetrun. kUsage for another name, or if there are devices but none with this index.
DeviceChoice choose_device(const std::string& wanted, int index, const DeviceOptions& options = {});

}  // namespace fleet
