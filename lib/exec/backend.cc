#include "exec/backend.h"

#include <filesystem>

#include "base/module.h"
#include "base/registry.h"

namespace fleet {
namespace {

Registry<BackendDef>& backends() {
  static Registry<BackendDef> registry("backend");
  return registry;
}

// The device files of Linux and of WSL.
bool has_nvidia_driver() {
  std::error_code error;
  return std::filesystem::exists("/dev/nvidiactl", error) ||
         std::filesystem::exists("/dev/dxg", error);
}

// `asked`: the user named this backend. Otherwise the CUDA libraries are not loaded unless a driver
// is present.
std::string no_device_reason(const std::string& name, bool asked, int* count) {
  *count = 0;
  if (!backends().find(name)) {
    if (!asked && !has_nvidia_driver()) return "no NVIDIA driver is running here";
    const std::string reason = load_module("fleet_" + name, name + " backend");
    if (!reason.empty()) return reason;
  }
  std::string why;
  *count = backends().get(name).device_count(&why);
  return why;
}

}  // namespace

bool register_backend(const std::string& name, BackendDef def) {
  backends().add(name, def);
  return true;
}

bool has_backend(const std::string& name) { return backends().find(name) != nullptr; }

std::vector<DType> low_precision_types(const std::string& backend, std::string* why) {
  const BackendDef& def = backends().get(backend);
  if (def.low_precision) return def.low_precision(why);
  *why = "the " + backend + " backend computes in float32 only";
  return {};
}

DeviceChoice choose_device(const std::string& wanted, int index, const DeviceOptions& options) {
  if (wanted == "cpu") return {backends().get("cpu").make_device(0, options), "", ""};
  if (wanted != "cuda" && wanted != "auto") {
    const std::vector<std::string> known = {"auto", "cpu", "cuda"};
    throw Error(ErrorCode::kUsage, "unknown device '" + wanted + "'", {},
                suggestion(wanted, known));
  }
  int count = 0;
  const std::string reason = no_device_reason("cuda", wanted == "cuda", &count);
  if (count > 0) {
    if (index < 0 || index >= count) {
      throw Error(ErrorCode::kUsage, "there is no cuda device " + std::to_string(index), {},
                  "this process sees " + std::to_string(count) + ", counted from 0");
    }
    return {backends().get("cuda").make_device(index, options), "", ""};
  }
  DeviceChoice choice{backends().get("cpu").make_device(0, options), "", reason};
  choice.note = wanted == "cuda" ? "cuda was asked for, but the CPU is used: " + reason
                                 : "training runs on the CPU: " + reason;
  return choice;
}

}  // namespace fleet
