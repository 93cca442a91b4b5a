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
};

// A backend registers itself when its room is linked, or when its module is loaded.
bool register_backend(const std::string& name, BackendDef def);
// Whether its kernels are here: linked, or loaded by choose_device(), with a device or without.
bool has_backend(const std::string& name);

// The 16-bit types in which this backend is faster here than in float32, the one to prefer first.
// Where there are none, *why says so in a clause. The backend is linked or loaded already.
std::vector<DType> low_precision_types(const std::string& backend, std::string* why);

struct DeviceChoice {
  std::unique_ptr<Device> device;
  std::string note;  // one line for the log where it is another device than the one asked for; else
                     // empty
  std::string reason;  // the same as a clause, without what it leads to
};

// wanted: "cpu"; "cuda": its device `index`, else the CPU, and the note says why; "auto": alike,
// in other words. A backend that is not linked is loaded from libfleet_<name>.so beside the
// program or in ../lib/fleetrun: only who has a GPU needs its libraries. kUsage for another name,
// or where there are devices but none with this index.
DeviceChoice choose_device(const std::string& wanted, int index, const DeviceOptions& options = {});

}  // namespace fleet
