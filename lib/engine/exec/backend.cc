#include "exec/backend.h"

#include <algorithm>
#include <filesystem>

#include "base/plugin.h"

namespace fleet {

Registry<BackendDef>& backends() {
  static Registry<BackendDef> registry("backend");
  return registry;
}

namespace {

// The device files of Linux and of WSL.
bool has_nvidia_driver() {
  std::error_code error;
  return std::filesystem::exists("/dev/nvidiactl", error) ||
         std::filesystem::exists("/dev/dxg", error);
}

struct Accelerator {
  const char* name;
  bool (*has_driver)();
  const char* no_driver;  // a clause
};

// In the order in which "auto" tries them.
constexpr Accelerator kAccelerators[] = {
    {"cuda", has_nvidia_driver, "no NVIDIA driver is running here"},
};

std::unique_ptr<Device> make_device(const std::string& backend, int index,
                                    const DeviceOptions& options, const ConfigTree& own) {
  const BackendDef& def = backends().get(backend);
  ConfigTree understood;
  for (const ConfigKey& key : def.options.keys()) {
    if (const auto value = own.peek(key.path)) {
      understood.set(key.path, *value, own.origin(key.path));
    }
  }
  return def.make_device(index, options, understood.validate(def.options));
}

std::string plugin_of(const std::string& accelerator) { return "fleet_" + accelerator; }

// `asked`: the user named this accelerator. Otherwise its libraries are not loaded without a
// driver.
std::string no_device_reason(const Accelerator& accelerator, bool asked, int* count) {
  const std::string name = accelerator.name;
  *count = 0;
  if (!backends().find(name)) {
    if (!asked && !accelerator.has_driver()) return accelerator.no_driver;
    const std::string reason = load_plugin(plugin_of(name), name + " backend");
    if (!reason.empty()) return reason;
  }
  std::string why;
  *count = backends().get(name).device_count(&why);
  return why;
}

}  // namespace

std::vector<std::string> options_of_backend(const std::string& backend) {
  std::vector<std::string> names;
  for (const ConfigKey& key : backend_def(backend).options.keys()) names.push_back(key.path);
  return names;
}

const BackendDef& backend_def(const std::string& name) {
  static const BackendDef unknown;
  const BackendDef* def = backends().find(name);
  return def ? *def : unknown;
}

bool has_backend(const std::string& name) { return backends().find(name) != nullptr; }

std::vector<DType> low_precision_types(const std::string& backend, std::string* why) {
  const BackendDef& def = backends().get(backend);
  if (def.low_precision) return def.low_precision(why);
  *why = "the " + backend + " backend computes in float32 only";
  return {};
}

std::vector<std::string> passes_of_backend(const std::string& backend) {
  return backend_def(backend).passes;
}

std::vector<std::string> accelerators() {
  std::vector<std::string> names;
  for (const Accelerator& accelerator : kAccelerators) names.emplace_back(accelerator.name);
  return names;
}

bool is_accelerator(const std::string& backend) {
  const std::vector<std::string> names = accelerators();
  return std::find(names.begin(), names.end(), backend) != names.end();
}

std::vector<std::string> device_names() {
  std::vector<std::string> names = accelerators();
  names.insert(names.begin(), {"auto", "cpu"});
  return names;
}

std::string backend_of_device(const std::string& wanted) {
  for (const Accelerator& accelerator : kAccelerators) {
    const bool asked = wanted == accelerator.name;
    if (!asked && wanted != "auto") continue;
    int count = 0;
    no_device_reason(accelerator, asked, &count);
    if (count > 0 || (asked && has_backend(wanted))) return accelerator.name;
  }
  return "cpu";
}

DeviceChoice choose_device(const std::string& wanted, int index, const DeviceOptions& options,
                           const ConfigTree& own, bool assigned) {
  const std::vector<std::string> known = device_names();
  if (std::find(known.begin(), known.end(), wanted) == known.end()) {
    throw Error(ErrorCode::kUsage, "unknown device '" + wanted + "'", {},
                suggestion(wanted, known));
  }
  DeviceChoice choice;
  for (const Accelerator& accelerator : kAccelerators) {
    const bool asked = wanted == accelerator.name;
    if (!asked && wanted != "auto") continue;
    int count = 0;
    choice.reason = no_device_reason(accelerator, asked, &count);
    if (count > 0) {
      if (index < 0 || index >= count) {
        // A restart may find the device of a launcher that has seen it.
        throw Error(
            assigned ? ErrorCode::kIo : ErrorCode::kUsage,
            std::string("there is no ") + accelerator.name + " device " + std::to_string(index), {},
            "this process sees " + std::to_string(count) + ", counted from 0" +
                (assigned ? "; the launcher found more: look for a failed one" : ""));
      }
      return {make_device(accelerator.name, index, options, own), "", "", ""};
    }
    if (asked) choice.missing = wanted;
    choice.unusable =
        !asked && (has_backend(accelerator.name) || plugin_exists(plugin_of(accelerator.name)));
  }
  choice.device = make_device("cpu", 0, options, own);
  if (!choice.missing.empty()) {
    choice.note = wanted + " was asked for, but the CPU is used: " + choice.reason;
  } else if (wanted == "auto") {
    choice.note = "training runs on the CPU: " + choice.reason;
  }
  return choice;
}

}  // namespace fleet
