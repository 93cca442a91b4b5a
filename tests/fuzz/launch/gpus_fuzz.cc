// --gpus, CUDA_VISIBLE_DEVICES and --nproc_per_node, a line each.
#include "base/text.h"
#include "launch/planning/devices.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/options.h"
#include "tests/fuzz/fuzz.h"

FLEET_FUZZ(gpus) {
  const std::vector<std::string> lines = fleet::split(bytes, '\n');
  fleet::ConfigTree tree;
  const auto line = [&](size_t i) { return i < lines.size() ? lines[i] : std::string(); };
  if (!line(0).empty()) tree.set("gpus", line(0), "--gpus");
  fleet::GpuInventory gpus{.count = 8, .visible = std::nullopt};
  if (!line(1).empty()) gpus.visible = line(1);
  if (!line(2).empty()) tree.set("nproc_per_node", line(2), "--nproc_per_node");
  static const fleet::Schema schema = fleet::launch_schema();
  const fleet::LaunchConfig config = fleet::read_launch_config(tree.validate(schema));
  const int visible = fleet::visible_gpu_count(gpus);
  for (const auto& devices : fleet::local_ranks(config, gpus).devices) {
    for (const int device : devices) {
      fleet::fuzz::require(device >= 0 && device < visible, "a rank's GPU is there");
    }
    fleet::visible_devices_of(gpus, devices);
    for (const int device : devices) fleet::number_of_visible_gpu(gpus, device);
  }
}
